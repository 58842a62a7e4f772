// SPDX-License-Identifier: Apache-2.0
//! The alias example in Rust, without crates and without the standard library: the ABI is C
//! structs and one function. Layouts are those of davit/plugin.h 1.0 and davit/arch.h 0.1; the
//! helper functions come from libdavit-sdk.a, as in C. Works with rustc 1.63.
#![no_std]

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr::null;

type Text = *const u8; // NUL-terminated

macro_rules! text {
    ($s:expr) => {
        concat!($s, "\0").as_ptr()
    };
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

// ---- davit/plugin.h ----

#[repr(C)]
struct Component {
    struct_size: u64,
    kind: Text,
    kind_major: u32,
    kind_minor: u32,
    kind_min_minor: u32,
    priority: i32,
    id: Text,
    capability: Text,
    needs: Text,
    purposes: u64,
    flags: u64,
    probe: *const c_void,
    create: unsafe extern "C" fn(*mut c_void, *const c_void, *mut *mut c_void, *const c_void) -> i32,
    destroy: unsafe extern "C" fn(*mut c_void),
    refuses: *const c_void,
    iface: *const Arch,
}

#[repr(C)]
struct Bundle {
    magic: u64,
    struct_size: u64,
    abi_major: u32,
    abi_minor: u32,
    min_host_minor: u32,
    flags: u32,
    id: Text,
    name: Text,
    vendor: Text,
    version: Text,
    license: Text,
    url: Text,
    build_tag: Text,
    components: *const *const Component,
    start: *const c_void,
    quiesce: *const c_void,
}

// ---- davit/arch.h ----

#[repr(C)]
struct ConfigRow {
    sym: Text,
    kind: Text,
    json: Text,
    gguf: Text,
    absent: Text,
    null: Text,
    bound: Text,
}

#[repr(C)]
struct SlotRow {
    id: Text,
    scope: Text,
    when: Text,
    shape: Text,
    hf: Text,
    gguf: Text,
    tp: Text,
    class: Text,
    flags: u32,
    reserved: u32,
}

#[repr(C)]
struct Arch {
    struct_size: u64,
    hf: Text,
    model_types: Text,
    gguf: Text,
    config: *const ConfigRow,
    config_stride: u64,
    slots: *const SlotRow,
    slot_stride: u64,
    ignore: *const Text,
    check: *const c_void,
    build: unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void, Text, *const c_void) -> i32,
}

#[link(name = "davit-sdk", kind = "static")]
extern "C" {
    fn davit_arch_create(ctx: *mut c_void, create: *const c_void, out: *mut *mut c_void,
                         sink: *const c_void) -> i32;
    fn davit_arch_destroy(this: *mut c_void);
    fn davit_decoder_build_plain(this: *mut c_void, build: *const c_void, b: *mut c_void,
                                 entry: Text, sink: *const c_void) -> i32;
}

// Tables are constant and hold pointers to constants only.
#[repr(transparent)]
struct Table<T>(T);
unsafe impl<T> Sync for Table<T> {}

// ---- tables ----

const fn row(sym: Text, kind: Text, json: Text, absent: Text, bound: Text) -> ConfigRow {
    ConfigRow { sym, kind, json, gguf: null(), absent, null: null(), bound }
}

static CONFIG: Table<[ConfigRow; 14]> = Table([
    row(text!("V"), text!("int"), text!("vocab_size"), text!("32000"), text!("1..2147483647")),
    row(text!("H"), text!("int"), text!("hidden_size"), text!("4096"), text!("1..1048576")),
    row(text!("I"), text!("int"), text!("intermediate_size"), text!("11008"), text!("1..16777216")),
    row(text!("L"), text!("int"), text!("num_hidden_layers"), text!("32"), text!("1..65536")),
    row(text!("nh"), text!("int"), text!("num_attention_heads"), text!("32"), text!("1..65536")),
    row(text!("nkv"), text!("int"), text!("num_key_value_heads"), text!("nh"), text!("1..nh")),
    row(text!("hd"), text!("int"), text!("head_dim"), text!("H/nh"), text!("1..65536")),
    row(text!("eps"), text!("float"), text!("rms_norm_eps"), text!("1e-6"), text!("0..1")),
    row(text!("max_pos"), text!("int"), text!("max_position_embeddings"), text!("2048"), null()),
    row(text!("theta"), text!("float"), text!("rope_parameters.rope_theta|rope_theta"),
        text!("10000"), null()),
    row(text!("tie"), text!("bool"), text!("tie_word_embeddings"), text!("0"), null()),
    row(text!("act"), text!("str"), text!("hidden_act"), text!("silu"), text!("silu|gelu")),
    // read by davit_decoder_build_plain: a window on no layer
    row(text!("windowed"), text!("int*"), null(), text!("0"), null()),
    row(null(), null(), null(), null(), null()),
]);

const fn slot(id: Text, scope: Text, shape: Text, hf: Text, tp: Text, class: Text,
              flags: u32) -> SlotRow {
    SlotRow { id, scope, when: null(), shape, hf, gguf: null(), tp, class, flags, reserved: 0 }
}

static SLOTS: Table<[SlotRow; 13]> = Table([
    slot(text!("tok_embd"), text!("G"), text!("V,H"), text!("embed_tokens"), text!("vocab"),
         text!("embed"), 8), // DAVIT_SLOT_EMBED
    slot(text!("head"), text!("G"), text!("V,H"), text!("lm_head"), text!("vocab"), text!("lin"),
         4), // DAVIT_SLOT_HEAD
    slot(text!("norm"), text!("G"), text!("H"), text!("norm"), text!("rep"), text!("norm"), 0),
    slot(text!("attn.norm"), text!("L"), text!("H"), text!("input_layernorm"), text!("rep"),
         text!("norm"), 0),
    slot(text!("ffn.norm"), text!("L"), text!("H"), text!("post_attention_layernorm"),
         text!("rep"), text!("norm"), 0),
    slot(text!("attn.q"), text!("L"), text!("nh*hd,H"), text!("self_attn.q_proj"),
         text!("col:hd"), text!("lin"), 0),
    slot(text!("attn.k"), text!("L"), text!("nkv*hd,H"), text!("self_attn.k_proj"),
         text!("col:hd"), text!("lin"), 0),
    slot(text!("attn.v"), text!("L"), text!("nkv*hd,H"), text!("self_attn.v_proj"),
         text!("col:hd"), text!("lin"), 0),
    slot(text!("attn.o"), text!("L"), text!("H,nh*hd"), text!("self_attn.o_proj"),
         text!("row:hd"), text!("lin"), 0),
    slot(text!("ffn.gate"), text!("L"), text!("I,H"), text!("mlp.gate_proj"), text!("col"),
         text!("lin"), 0),
    slot(text!("ffn.up"), text!("L"), text!("I,H"), text!("mlp.up_proj"), text!("col"),
         text!("lin"), 0),
    slot(text!("ffn.down"), text!("L"), text!("H,I"), text!("mlp.down_proj"), text!("row"),
         text!("lin"), 0),
    slot(null(), null(), null(), null(), null(), null(), 0),
]);

static ARCH: Table<Arch> = Table(Arch {
    struct_size: size_of::<Arch>() as u64,
    hf: text!("AcmeForCausalLM"),
    model_types: text!("acme"),
    gguf: null(),
    config: &CONFIG.0 as *const ConfigRow,
    config_stride: size_of::<ConfigRow>() as u64,
    slots: &SLOTS.0 as *const SlotRow,
    slot_stride: size_of::<SlotRow>() as u64,
    ignore: null(),
    check: null(),
    build: davit_decoder_build_plain,
});

// ---- descriptor and manifest; what is said twice must be equal, davit compares them ----

macro_rules! id { () => { "org.example.arch.acme" } }
macro_rules! build_tag { () => { "arch=x86_64;bits=64;cc=rustc;fast_math=no;sanitizer=none" } }

static COMPONENT: Table<Component> = Table(Component {
    struct_size: size_of::<Component>() as u64,
    kind: text!("arch"),
    kind_major: 0,
    kind_minor: 1,
    kind_min_minor: 0,
    priority: 50,
    id: text!(id!()),
    capability: text!("hf=AcmeForCausalLM"),
    needs: null(),
    purposes: 1 | 2 | 4 | 8,
    flags: 0,
    probe: null(),
    create: davit_arch_create,
    destroy: davit_arch_destroy,
    refuses: null(),
    iface: &ARCH.0,
});

static COMPONENTS: Table<[*const Component; 2]> = Table([&COMPONENT.0, null()]);

static BUNDLE: Table<Bundle> = Table(Bundle {
    magic: 0x314c505449564144, // "DAVITPL1"
    struct_size: size_of::<Bundle>() as u64,
    abi_major: 1,
    abi_minor: 0,
    min_host_minor: 0,
    flags: 0,
    id: text!(id!()),
    name: text!("Acme in Rust"),
    vendor: text!("Example"),
    version: text!("1.0.0"),
    license: text!("Apache-2.0"),
    url: null(),
    build_tag: text!(build_tag!()),
    components: &COMPONENTS.0 as *const *const Component,
    start: null(),
    quiesce: null(),
});

/// An ELF note of section .note.davit: owner "DAVIT", type 1 bundle or 2 component, JSON.
#[repr(C, align(4))]
struct Note<const N: usize> {
    n_name: u32,
    n_desc: u32,
    kind: u32,
    name: [u8; 8],
    desc: [u8; N],
}

const fn note<const N: usize>(kind: u32, json: &str) -> Note<N> {
    let bytes = json.as_bytes();
    let mut desc = [0; N]; // the text, a NUL, zeros up to a multiple of four
    let mut i = 0;

    while i < bytes.len() {
        desc[i] = bytes[i];
        i += 1;
    }
    Note { n_name: 6, n_desc: bytes.len() as u32 + 1, kind, name: *b"DAVIT\0\0\0", desc }
}

const fn padded(json: &str) -> usize {
    (json.len() + 1 + 3) & !3
}

const COMPONENT_JSON: &str = concat!(
    "{\"id\":\"", id!(), "\",\"kind\":\"arch\",\"kind_abi\":\"0.1\",\"priority\":50,",
    "\"capability\":\"hf=AcmeForCausalLM\",",
    "\"purposes\":\"DAVIT_INSPECT | DAVIT_MAP | DAVIT_CONVERT | DAVIT_RUN\"}"
);
const BUNDLE_JSON: &str = concat!(
    "{\"schema\":\"davit-plugin/1\",\"id\":\"", id!(), "\",\"name\":\"Acme in Rust\",",
    "\"vendor\":\"Example\",\"version\":\"1.0.0\",\"license\":\"Apache-2.0\",\"abi_major\":1,",
    "\"abi_minor\":0,\"min_host_minor\":0,\"build\":\"", build_tag!(), "\"}"
);

#[used]
#[link_section = ".note.davit"]
static COMPONENT_NOTE: Note<{ padded(COMPONENT_JSON) }> = note(2, COMPONENT_JSON);
#[used]
#[link_section = ".note.davit"]
static BUNDLE_NOTE: Note<{ padded(BUNDLE_JSON) }> = note(1, BUNDLE_JSON);

/// The only symbol. Pure: returns constant data.
#[no_mangle]
pub extern "C" fn davit_plugin_entry_v1(_hello: *const c_void, _sink: *const c_void) -> *const c_void {
    &BUNDLE.0 as *const Bundle as *const c_void
}
