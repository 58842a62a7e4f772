/* SPDX-License-Identifier: Apache-2.0
 * The project templates of `davit plugin new`, from sdk/templates, inside the program: what it
 * writes fits the SDK that it was built with, wherever it lies.
 */
#ifndef DAVIT_CLI_PLUGIN_TEMPLATES_H
#define DAVIT_CLI_PLUGIN_TEMPLATES_H

/* Text with @NAME@, @ID@, @CLASS@ to be replaced. */
typedef struct DavitTemplate {
    const char *kind; /* "format" ... or "common" = all kinds; NULL ends the table */
    const char *file; /* name in the project, with the same placeholders */
    const char *text;
} DavitTemplate;

/* Several rows of one kind and file are one file, in this order. */
extern const DavitTemplate davit_templates[];

#endif
