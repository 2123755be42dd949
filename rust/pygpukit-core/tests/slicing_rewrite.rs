//! The PTX parser and rewriter: what is changed, what is refused and where, and that no text makes it panic.

mod cases;

use std::collections::BTreeSet;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::slicing::{rewrite, Module, Options, Reason, Unsliceable};

const HEAD: &str = ".version 9.0\n.target sm_90a\n.address_size 64\n";

fn module(body: &str) -> String {
    format!("{HEAD}.visible .entry k(\n\t.param .u64 k_param_0\n)\n{{\n\t.reg .b32 %r<9>;\n{body}\n\tret;\n}}\n")
}

fn sliced(source: &str) -> Result<String, Unsliceable> {
    rewrite(source, "k", &Options::default())
}

fn refused(source: &str) -> (Reason, String, u32) {
    let error = sliced(source).expect_err("it must be refused");
    (error.reason, error.function, error.line)
}

#[test]
fn reads_of_the_block_index_get_the_offset_and_those_of_the_grid_the_whole() {
    let source = module("\tmov.u32 %r1, %ctaid.x;\n@%p1 mov.b32 %r2, %nctaid.z;\n");
    let text = sliced(&source).unwrap();
    let fragments = [
        ".param .u64 k_param_0,\n\t.param .align 4 .b8 k_pk_slice[24]\n)",
        "{\n\t.reg .b32 %pk_slice_<9>;\n",
        "ld.param.u32 \t%pk_slice_0, [k_pk_slice+0];\n\tmov.u32 \t%pk_slice_6, %ctaid.x;\n\tadd.u32 \t%pk_slice_6, \
         %pk_slice_6, %pk_slice_0;\n\tmov.u32 %r1, %pk_slice_6;",
        "ld.param.u32 \t%pk_slice_5, [k_pk_slice+20];\n\t@%p1 mov.b32 %r2, %pk_slice_5;",
    ];
    for part in fragments {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
    assert!(!text.contains("%nctaid"));
}

#[test]
fn textures_and_surfaces_have_dimensions_in_their_names() {
    let body = "\tmov.u32 %r1, %ctaid.x;\n\ttex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];\n\
                \ttex.level.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %f5, %f6, %f6}], %f7;\n\
                \tsust.b.3d.b32.trap [%rd2, {%r1, %r2, %r3, %r3}], {%r4};\n";
    let text = sliced(&module(body)).unwrap();
    for line in body.lines().skip(1) {
        assert!(text.contains(line.trim()), "{line:?} is missing in {text}");
    }
}

#[test]
fn an_entry_without_parameters_gets_a_list() {
    for list in ["", "()", "( )"] {
        let source = format!("{HEAD}.entry k{list}\n{{ mov.u32 %r1, %ctaid.y; ret; }}");
        let text = sliced(&source).unwrap();
        assert!(text.contains("(\n\t.param .align 4 .b8 k_pk_slice[24]"), "{text}");
        assert!(!text.contains(",\n\t.param"), "{text}");
        Module::parse(&text).unwrap();
    }
}

const CALLS: &str = "\
.func (.param .b32 ret) deep(.param .b32 a) { mov.u32 %r1, %ctaid.x; st.param.b32 [ret], %r1; ret; }
.func middle() { { call (r), deep, (%r1); } ret; }
.func plain(.param .b32 a);
.func plain(.param .b32 a) { add.u32 %r1, %r1, 1; ret; }
.visible .entry other() { call middle; ret; }
.visible .entry k(.param .u64 p) { @%p1 call.uni middle; call.uni plain, (%r1); call (r), deep, (%r2); ret; }
";

#[test]
fn functions_that_need_the_place_get_it_from_their_callers() {
    let text = sliced(&format!("{HEAD}{CALLS}")).unwrap();
    let registers = "%pk_slice_0, %pk_slice_1, %pk_slice_2, %pk_slice_3, %pk_slice_4, %pk_slice_5";
    for part in [
        format!("call (r), deep, (%r1, {registers});"),
        format!("@%p1 call.uni middle, ({registers});"),
        format!("call (r), deep, (%r2, {registers});"),
        "call.uni plain, (%r1);".to_string(),
        ".func middle(\n\t.param .b32 middle_pk_slice_0,".to_string(),
        "ld.param.u32 \t%pk_slice_5, [middle_pk_slice_5];".to_string(),
        "ld.param.u32 \t%pk_slice_5, [k_pk_slice+20];".to_string(),
    ] {
        assert!(text.contains(&part), "{part:?} is missing in {text}");
    }
    assert!(!text.contains("other"), "other entries are left out: {text}");
    assert!(!text.contains("plain_pk_slice"), "{text}");
    assert_eq!(Module::parse(&text).unwrap().entries(), ["k"]);
}

#[test]
fn what_is_not_changed_stays_byte_for_byte() {
    let source = module("\tmov.u32 %r1, %tid.x; // %ctaid.x\n\t.loc 1 2 3, function_name $L__x, inlined_at 1 4 5\n");
    let text = sliced(&source).unwrap();
    let without = text.replace(",\n\t.param .align 4 .b8 k_pk_slice[24]", "");
    assert_eq!(without.replace("\n\t.reg .b32 %pk_slice_<9>;", ""), source);
}

#[test]
fn a_sliced_module_is_not_sliced_again() {
    let once = sliced(&module("\tmov.u32 %r1, %ctaid.x;")).unwrap();
    assert_eq!(refused(&once).0, Reason::AlreadySliced);
}

#[test]
fn refusals_name_the_reason_and_the_place() {
    let cases = [
        ("\tmov.u32 %r1, %gridid;", Reason::GridId),
        ("\tmov.u32 %r1, %envreg2;", Reason::GridSync),
        ("\tmov.u32 %r1, %clusterid.x;", Reason::Cluster),
        ("\tmov.u32 %r1, %cluster_ctarank;", Reason::Cluster),
        ("\tbarrier.cluster.arrive;", Reason::Cluster),
        (
            "\tclusterlaunchcontrol.try_cancel.async.shared::cta [%r1], [%r2];",
            Reason::Cluster,
        ),
        ("\tgriddepcontrol.wait;", Reason::ProgrammaticLaunch),
        ("\tmov.v4.u32 {%r1,%r2,%r3,%r4}, %ctaid;", Reason::BlockIndexRead),
        ("\tmov.u16 %rs1, %ctaid.x;", Reason::BlockIndexRead),
        ("\tadd.u32 %r1, %ctaid.x, %r2;", Reason::BlockIndexRead),
        ("\tcall (r), %rd1, (a), proto;", Reason::IndirectCall),
        ("\tcall (r), table, (a), proto;", Reason::IndirectCall),
    ];
    for (text, reason) in cases {
        assert_eq!(refused(&module(text)), (reason, "k".to_string(), 9), "{text}");
    }
}

#[test]
fn directives_and_callees_are_refused_too() {
    let header = format!("{HEAD}.entry k() .maxntid 64, 1, 1 .reqnctapercluster 2\n{{ ret; }}");
    assert_eq!(refused(&header).0, Reason::Cluster);
    let below = format!("{HEAD}.func f()\n{{ mov.u32 %r1, %gridid; ret; }}\n.entry k()\n{{ call f; ret; }}");
    assert_eq!(refused(&below), (Reason::GridId, "f".to_string(), 5));
    for (name, reason) in [
        ("cudaLaunchDeviceV2", Reason::DynamicParallelism),
        ("mystery", Reason::ExternCall),
    ] {
        let source = format!("{HEAD}.extern .func {name}();\n.entry k() {{ call {name}; ret; }}");
        assert_eq!(refused(&source).0, reason);
    }
    let printing = format!("{HEAD}.extern .func vprintf();\n.entry k() {{ call vprintf; ret; }}");
    sliced(&printing).unwrap();
    let absent = rewrite(HEAD, "k", &Options::default()).unwrap_err();
    assert_eq!(absent.reason, Reason::NoEntry);
}

#[test]
fn what_the_entry_does_not_reach_does_not_count() {
    let source = format!("{HEAD}.func f() {{ mov.u32 %r1, %gridid; ret; }}\n.entry k() {{ ret; }}");
    sliced(&source).unwrap();
}

#[test]
fn variables_that_change_are_refused_and_constants_are_not() {
    let of = |declared: &str| format!("{HEAD}{declared}\n.entry k() {{ mov.u64 %rd1, v; ret; }}");
    assert_eq!(refused(&of(".global .align 4 .u32 v = 3;")).0, Reason::ModuleVariable);
    assert_eq!(
        refused(&of(".visible .global .align 4 .b8 a[4], v[8];")).0,
        Reason::ModuleVariable
    );
    assert_eq!(
        refused(&of(".global .u32 w;\n.const .u64 v[2] = {generic(w), 0};")).0,
        Reason::ModuleVariable
    );
    let constant = of(".const .align 4 .b8 v[8] = {1, 2, 3, 4};");
    sliced(&constant).unwrap();
    let options = Options {
        host_variables: BTreeSet::from(["v".to_string()]),
        newest: None,
    };
    assert_eq!(
        rewrite(&constant, "k", &options).unwrap_err().reason,
        Reason::ModuleVariable
    );
    sliced(&of(".global .u32 w;\n.shared .align 4 .b8 v[8];")).unwrap();
}

#[test]
fn a_later_version_is_lowered_to_the_newest_known() {
    let version = |newest| {
        let options = Options {
            newest,
            ..Options::default()
        };
        let text = rewrite(&module(""), "k", &options).unwrap();
        text.lines().next().unwrap().to_string()
    };
    assert_eq!(version(Some((8, 7))), ".version 8.7");
    assert_eq!(version(Some((9, 0))), ".version 9.0");
    assert_eq!(version(Some((10, 0))), ".version 9.0");
}

#[test]
fn malformed_text_is_refused_with_its_line() {
    for (text, line) in [
        ("\u{1}", 1),
        (".entry k() {\n.", 2),
        ("/* open", 1),
        (".file 1 \"open", 1),
        (".version", 1),
        ("\n.entry", 2),
        (".entry k(", 1),
        (".entry k() {", 1),
        (".entry k() { mov", 1),
        (".entry k() { mov }", 1),
        (".entry k() { @ }", 1),
        (".func (.param", 1),
        (".section .debug {", 1),
        (".global ;", 1),
        ("}", 1),
    ] {
        let error = Module::parse(text).expect_err(text);
        assert_eq!((error.reason, error.line), (Reason::Malformed, line), "{text}");
    }
}

/// Pieces of PTX in any order, and damaged ones.
fn texts() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        ".version 9.0\n",
        ".target sm_90a, debug\n",
        ".visible",
        ".entry",
        ".func",
        " k",
        "(",
        ")",
        "{",
        "}",
        ";",
        ",",
        "[",
        "]",
        "@",
        "!",
        "%p1",
        " mov.u32 ",
        "%r1",
        "%ctaid.x",
        "%nctaid",
        ".y",
        "call",
        ".uni",
        " f",
        ":",
        "$L:",
        ".loc 1 2 3\n",
        ".section",
        ".global",
        ".const .align 4 .b8 v[4]",
        "=",
        "\"",
        "/*",
        "*/",
        "//",
        "\n",
        "\\",
        ".param .b32 a",
        ".pragma \"x\";",
        "%envreg1",
        "0f3F800000",
        "\u{e9}",
        "<",
        ".reg .b32 %r<4>;",
        "pk_slice",
    ]);
    prop::collection::vec(pieces, 0..60).prop_map(|parts| parts.concat())
}

/// A module that parses, cut and with bytes changed.
fn damaged() -> impl Strategy<Value = String> {
    let whole = format!(
        "{}{CALLS}",
        module("\tmov.u32 %r1, %ctaid.x; { .reg .b32 t; mov.u32 t, %nctaid.y; }")
    );
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (edits, any::<prop::sample::Index>(), any::<bool>()).prop_map(move |(edits, end, cut)| {
        let mut bytes = whole.clone().into_bytes();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(end.index(bytes.len()));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn any_text_is_parsed_or_refused(text in prop_oneof![texts(), damaged(), any::<String>()]) {
        match rewrite(&text, "k", &Options { newest: Some((8, 0)), ..Options::default() }) {
            // What comes out parses, has the one entry, is not sliced again, and is the same every time.
            Ok(out) => {
                let parsed = Module::parse(&out);
                prop_assert!(parsed.is_ok(), "{:?} from {:?}", parsed.err(), text);
                prop_assert!(parsed.unwrap().entries().contains(&"k"));
                prop_assert_eq!(sliced(&out).unwrap_err().reason, Reason::AlreadySliced);
                prop_assert_eq!(rewrite(&text, "k", &Options { newest: Some((8, 0)), ..Options::default() }), Ok(out));
            }
            Err(error) => prop_assert!(error.line as usize <= text.matches('\n').count() + 1, "{}", error),
        }
    }
}
