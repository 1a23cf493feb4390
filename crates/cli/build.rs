//! How the program is linked.

#[expect(clippy::disallowed_methods, reason = "this is how cargo tells what it builds for")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if (target("OS"), target("ENV"), target("ARCH")) == ("linux".into(), "gnu".into(), "x86_64".into()) {
        // The addresses that a start adjusts, as a bitmap: as a list they were a twentieth of the memory of an idle
        // server.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
