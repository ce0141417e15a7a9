//! Bakes the folder of this build into the crate, so that the two built libraries are found.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    println!("cargo::rustc-env=LINEAGE_SIM_OUT_DIR={out}");
}
