use lineage_sim::isolated;

use crate::call;
use crate::driver::{Driver, Handle};
use crate::virtual_gpu;

const NAME: &str = "rows_are_copied_and_set";

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy2D {
    source_x: usize,
    source_y: usize,
    source_type: u32,
    source_host: u64,
    source_device: u64,
    source_array: u64,
    source_pitch: usize,
    target_x: usize,
    target_y: usize,
    target_type: u32,
    target_host: u64,
    target_device: u64,
    target_array: u64,
    target_pitch: usize,
    width: usize,
    height: usize,
}

/// Rows of 4 bytes at a pitch of 8 are set to 1, 2 of them to 2; then three rows are copied to the host, packed, from the second row on.
#[test]
fn with_pitches_and_offsets() {
    isolated(&format!("{NAME}::with_pitches_and_offsets"), || {
        let gpu = virtual_gpu();
        let driver = Driver::open();
        let memory = driver.allocate(40);
        let set = |value: u8, height: usize| call!(driver.library, "cuMemsetD2D8Async"(memory => u64, 8 => usize, value => u8, 4 => usize, height => usize, driver.stream => Handle));
        assert_eq!((set(1, 5), set(2, 2)), (0, 0));
        let mut host = [9_u8; 14];
        let copy = Copy2D {
            source_x: 1,
            source_y: 1,
            source_type: 2,
            source_host: 0,
            source_device: memory,
            source_array: 0,
            source_pitch: 8,
            target_x: 0,
            target_y: 0,
            target_type: 1,
            target_host: host.as_mut_ptr().expose_provenance() as u64,
            target_device: 0,
            target_array: 0,
            target_pitch: 4,
            width: 4,
            height: 3,
        };
        let run = |copy: &Copy2D| call!(driver.library, "cuMemcpy2DAsync_v2"(copy => *const Copy2D, driver.stream => Handle));
        assert_eq!(run(&copy), 0);
        driver.synchronize();
        // Bytes 1 to 4 of rows 1, 2 and 3: the fourth is between the rows.
        assert_eq!(host, [2, 2, 2, 0, 1, 1, 1, 0, 1, 1, 1, 0, 9, 9]);
        let truth = gpu.truth();
        let bytes: Vec<u64> = truth.operations.iter().map(|one| one.bytes).collect();
        assert_eq!(bytes, [20, 8, 12]);
        // A pitch below the width, an array, and rows beyond the memory.
        assert_eq!(
            run(&Copy2D {
                source_pitch: 3,
                ..copy
            }),
            1
        );
        assert_eq!(
            run(&Copy2D {
                source_type: 3,
                ..copy
            }),
            801
        );
        assert_eq!(
            run(&Copy2D {
                source_y: 3,
                ..copy
            }),
            1
        );
        assert_eq!(set(1, 6), 1);
    });
}
