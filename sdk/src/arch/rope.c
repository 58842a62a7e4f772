/* SPDX-License-Identifier: Apache-2.0
 * Inverse frequencies and attention factors of rotary embeddings.
 *
 * Numbers are rounded to float32 where transformers (modeling_rope_utils) has a float32
 * tensor, and stay double where it has a Python float, so that results agree bit for bit
 * but for the last place of pow. d = rotated dims, j = 0 .. d/2 - 1. */
#include <math.h>
#include <string.h>

#include <davit/help/records.h>
#include <davit/help/rope.h>

static const double pi = 3.14159265358979323846;

uint64_t davit_rope_rot_dim(const davit_rope_spec *spec, uint64_t head_dim)
{
    double d = (double)head_dim;

    if (spec->type == DAVIT_ROPE_NONE || head_dim / 2 > DAVIT_ROPE_MAX_PAIRS)
        return 0;
    if (spec->type != DAVIT_ROPE_PROPORTIONAL)
        d = floor(d * spec->partial);
    /* odd widths exist on paper only: refused by the caller */
    return (uint64_t)d % 2 == 0 ? (uint64_t)d : 0;
}

/* base^(2j/d) as torch computes it: exponent and result in float32. */
static float base_power(double base, uint64_t j, uint64_t d)
{
    float exponent = (float)(2 * j) / (float)d;

    return (float)pow((double)(float)base, (double)exponent);
}

/* Dims below which YaRN extrapolates and above which it interpolates, in pairs. */
static double correction(double rotations, uint64_t d, const davit_rope_spec *spec)
{
    return (double)d * log(spec->original_max / (rotations * 2 * pi)) /
           (2 * log(spec->theta));
}

static float yarn(const davit_rope_spec *spec, uint64_t j, uint64_t d)
{
    double lo = correction(spec->beta_fast, d, spec);
    double hi = correction(spec->beta_slow, d, spec);
    float power = base_power(spec->theta, j, d);
    float own = 1.0f / power;
    float divided = 1.0f / ((float)spec->factor * power);
    float ramp;

    if (spec->truncate) {
        lo = floor(lo);
        hi = ceil(hi);
    }
    lo = fmax(lo, 0);
    hi = fmin(hi, (double)d - 1);
    if (lo == hi)
        hi += 0.001; /* a band of no width would divide by zero */
    ramp = ((float)j - (float)lo) / (float)(hi - lo);
    ramp = 1.0f - fminf(fmaxf(ramp, 0.0f), 1.0f); /* share of the unscaled frequency */
    return divided * (1.0f - ramp) + own * ramp;
}

static float llama3(const davit_rope_spec *spec, uint64_t j, uint64_t d)
{
    float own = 1.0f / base_power(spec->theta, j, d);
    float divided = own / (float)spec->factor;
    float wavelength = (float)(2 * pi) / own;
    float smooth;

    if (wavelength > (float)(spec->original_max / spec->low_freq_factor))
        return divided;
    if (wavelength < (float)(spec->original_max / spec->high_freq_factor))
        return own;
    smooth = ((float)spec->original_max / wavelength - (float)spec->low_freq_factor) /
             (float)(spec->high_freq_factor - spec->low_freq_factor);
    return (1.0f - smooth) * own / (float)spec->factor + smooth * own;
}

static float longrope(const davit_rope_spec *spec, uint64_t j, uint64_t d,
                      uint32_t variant)
{
    const double *factor = variant ? spec->long_factor : spec->short_factor;
    float extension = factor && j < spec->n_factors ? (float)factor[j] : 1.0f;

    return 1.0f / (extension * base_power(spec->theta, j, d));
}

/* The first m = int(p * hd / 2) pairs rotate with exponents over the whole head. */
static float proportional(const davit_rope_spec *spec, uint64_t j, uint64_t head_dim)
{
    uint64_t m = (uint64_t)floor(floor(spec->partial * (double)head_dim) / 2);

    if (j >= m)
        return 0.0f;
    return 1.0f / base_power(spec->theta, j, head_dim) / (float)spec->factor;
}

void davit_rope_inv_freq(const davit_rope_spec *spec, uint64_t head_dim, uint32_t variant,
                         float *out)
{
    uint64_t d = davit_rope_rot_dim(spec, head_dim);

    for (uint64_t j = 0; j < d / 2; j++) {
        switch (spec->type) {
        case DAVIT_ROPE_LINEAR:
            out[j] = 1.0f / base_power(spec->theta, j, d) / (float)spec->factor;
            break;
        case DAVIT_ROPE_YARN:
            out[j] = yarn(spec, j, d);
            break;
        case DAVIT_ROPE_LLAMA3:
            out[j] = llama3(spec, j, d);
            break;
        case DAVIT_ROPE_LONGROPE:
            out[j] = longrope(spec, j, d, variant);
            break;
        case DAVIT_ROPE_PROPORTIONAL:
            out[j] = proportional(spec, j, head_dim);
            break;
        default: /* DEFAULT, and DYNAMIC within max_positions */
            out[j] = 1.0f / base_power(spec->theta, j, d);
        }
    }
}

double davit_rope_mscale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

float davit_rope_attention(const davit_rope_spec *spec)
{
    double f = spec->factor;

    if (spec->type != DAVIT_ROPE_YARN && spec->type != DAVIT_ROPE_LONGROPE)
        return 1;
    if (!isnan(spec->attention_factor))
        return (float)spec->attention_factor;
    if (spec->type == DAVIT_ROPE_LONGROPE)
        return f <= 1 ? 1 : (float)sqrt(1 + log(f) / log(spec->original_max));
    if (spec->mscale != 0 && spec->mscale_all_dim != 0)
        return (float)(davit_rope_mscale(f, spec->mscale) /
                       davit_rope_mscale(f, spec->mscale_all_dim));
    return (float)davit_rope_mscale(f, 1);
}

static int32_t refuse_head(const davit_graph *g)
{
    const davit_refusal no = {.struct_size = DAVIT_END(davit_refusal, url),
                              .code = DAVIT_R_CONFIG_UNSUPPORTED,
                              .subject = "head_dim",
                              .expected = "an even number of rotated dims, at most 8192",
                              .message = "the head does not fit the rotary embedding"};

    g->build->fail(g->b, &no);
    return -1;
}

int32_t davit_rope_angles(const davit_graph *g, const char *layer_type, uint64_t head_dim,
                          int32_t divisors)
{
    davit_rope_spec spec = {.struct_size = DAVIT_END(davit_rope_spec, long_factor)};
    davit_rope_angles_attr attr = {.struct_size =
                                       DAVIT_END(davit_rope_angles_attr, n_variants),
                                   .select = DAVIT_ROPE_FIXED,
                                   .n_variants = 1};
    float table[2 * DAVIT_ROPE_MAX_PAIRS];
    davit_op_rec r;

    g->get->rope(g->config, layer_type, &spec);
    if (spec.type == DAVIT_ROPE_NONE)
        return -1;
    attr.rot_dim = davit_rope_rot_dim(&spec, head_dim);
    if (attr.rot_dim == 0)
        return refuse_head(g);
    if (spec.type == DAVIT_ROPE_DYNAMIC) {
        attr.select = DAVIT_ROPE_NTK;
        attr.theta = spec.theta;
        attr.factor = spec.factor;
        attr.max_positions = spec.max_positions;
    } else if (spec.type == DAVIT_ROPE_LONGROPE) {
        attr.select = DAVIT_ROPE_LONG;
        attr.max_positions = spec.original_max;
        attr.n_variants = 2;
    }
    for (uint32_t v = 0; v < attr.n_variants; v++) {
        attr.attention[v] = davit_rope_attention(&spec);
        davit_rope_inv_freq(&spec, head_dim, v, table + v * attr.rot_dim / 2);
    }
    r = davit_rec(DAVIT_OP_ROPE_ANGLES, &attr);
    davit_rec_weight(&r,
                     g->build->constant(g->b, table, attr.n_variants, attr.rot_dim / 2));
    davit_rec_weight(&r, divisors);
    return davit_rec_out(g, &r, davit_value_f32(g, attr.rot_dim));
}
