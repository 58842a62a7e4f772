/* SPDX-License-Identifier: Apache-2.0
 * The fixed list of checks.
 */
#ifndef DAVIT_DOCTOR_TABLE_H
#define DAVIT_DOCTOR_TABLE_H

#include "doctor/doctor.h"

extern const DavitCheckInfo davit_check_table[];
extern const size_t davit_n_checks;

#endif
