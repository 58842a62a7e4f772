/* SPDX-License-Identifier: Apache-2.0
 * One component of every kind, in a file that crashes when it is loaded: whoever asks
 * components of any kind must go on without it. */
#include "toy.h"

#include <davit/arch.h>
#include <davit/kernels.h>
#include <davit/quant.h>
#include <davit/tokenizer.h>
#include <signal.h>

__attribute__((constructor)) static void crash(void)
{
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

/* priority 100: all are asked before davit's own */
DAVIT_COMPONENT(format, DAVIT_KIND_FORMAT, "org.example.broken.format", "ext=safetensors",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN, 100,
                .probe = toy_probe, .iface = &toy_format);
DAVIT_COMPONENT(arch, DAVIT_KIND_ARCH, "org.example.broken.arch", "hf=LlamaForCausalLM",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_RUN, 100, .iface = &toy_format);
DAVIT_COMPONENT(quant, DAVIT_KIND_QUANT, "org.example.broken.quant", "layout=f32",
                DAVIT_INSPECT | DAVIT_MAP | DAVIT_RUN, 100, .iface = &toy_format);
DAVIT_COMPONENT(tokenizer, DAVIT_KIND_TOKENIZER, "org.example.broken.tokenizer",
                "family=gpt2", DAVIT_RUN, 100, .iface = &toy_format);
DAVIT_COMPONENT(kernels, DAVIT_KIND_KERNELS, "org.example.broken.kernels", "device=cpu",
                DAVIT_RUN, 100, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle.broken", "Broken", "Example", "1.0.0", "MIT", &format, &arch,
             &quant, &tokenizer, &kernels);
