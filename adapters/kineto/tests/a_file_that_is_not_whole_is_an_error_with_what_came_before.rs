//! Cut, damaged and oversized files, and files that hold something else.

mod traces;

use lineage_import::Skip;
use lineage_kineto::{ImportErrorKind, Settings};

fn kernel(id: u32) -> String {
    format!(
        r#"{{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": {id}, "dur": 1,
        "args": {{"device": 0, "context": 1, "stream": 7, "correlation": {id}}}}}"#
    )
}

/// A trace of three kernels.
fn three() -> String {
    let kernels = [1, 2, 3].map(kernel);
    let kernels: Vec<_> = kernels.iter().map(String::as_str).collect();
    traces::trace(r#""schemaVersion": 1,"#, &kernels)
}

#[test]
fn a_text_cut_anywhere_gives_the_events_before_the_cut() {
    let text = three();
    // Where each kernel's text ends, and where the list begins.
    let ends: Vec<usize> = text
        .match_indices("}}")
        .map(|(at, end)| at + end.len())
        .collect();
    assert_eq!(ends.len(), 3);
    let list = text.find("\"traceEvents\": [").expect("the list") + "\"traceEvents\": [".len();
    for cut in 0..text.len() {
        let error = traces::import(&text[..cut]).expect_err("not whole");
        if text[..cut].trim().is_empty() {
            assert!(matches!(error.kind(), ImportErrorKind::NotATrace), "{cut}");
            assert!(error.into_partial().is_none(), "{cut}");
            continue;
        }
        let ImportErrorKind::Truncated { text_bytes } = *error.kind() else {
            panic!("cut at {cut}: {error}");
        };
        assert!(text_bytes <= cut as u64, "{cut}");
        let message = error.to_string();
        let Some(partial) = error.into_partial() else {
            assert!(cut < list, "{cut}");
            continue;
        };
        assert!(cut >= list, "{cut}");
        let before = ends.iter().filter(|&&end| end <= cut).count() as u64;
        assert_eq!(traces::counts(&partial), [0, before, 0, 0], "{cut}");
        assert_eq!(traces::skipped(&partial), [(Skip::Truncated, 1)], "{cut}");
        assert_eq!(partial.holdings().notes, [message], "{cut}");
    }
    assert_eq!(traces::counts(&traces::sound(&text)), [0, 3, 0, 0]);
}

#[test]
fn a_bare_list_that_is_not_closed_is_cut() {
    let text = format!("[{}, {},", kernel(1), kernel(2));
    let error = traces::import(text).expect_err("not closed");
    assert!(matches!(error.kind(), ImportErrorKind::Truncated { .. }));
    let partial = error.into_partial().expect("two events");
    assert_eq!(traces::counts(&partial), [0, 2, 0, 0]);
}

#[test]
fn a_gzip_file_cut_anywhere_is_no_whole_trace() {
    let whole = traces::gzip(three());
    for cut in 2..whole.len() {
        let error = traces::import(&whole[..cut]).expect_err("not whole");
        assert!(
            matches!(error.kind(), ImportErrorKind::Truncated { .. }),
            "{cut}: {error}"
        );
    }
    // All but the checksum was there.
    let error = traces::import(&whole[..whole.len() - 8]).expect_err("not whole");
    let partial = error.into_partial().expect("three events");
    assert_eq!(traces::counts(&partial), [0, 3, 0, 0]);
}

#[test]
fn real_files_cut_anywhere_and_changed_anywhere_end_in_a_recording_or_an_error() {
    let folder = traces::in_repository().join("kineto");
    for file in [
        "triton_example__triton_example.json.gz",
        "trace_compare__base__base.json.gz",
        "critical_path__cuda_event_sync__event_sync_trace.json.gz",
        "amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    ] {
        let packed = std::fs::read(folder.join(file)).expect("a file of the repository");
        let mut text = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&packed[..]);
        std::io::copy(&mut decoder, &mut text).expect("sound gzip");
        let whole = traces::counts(&traces::sound(&text));
        for bytes in [&packed, &text] {
            for cut in (0..bytes.len()).step_by(97) {
                let error = traces::import(&bytes[..cut]).expect_err("not whole");
                if let Some(partial) = error.into_partial() {
                    let counts = traces::counts(&partial);
                    assert!(counts.iter().zip(&whole).all(|(part, all)| part <= all));
                    assert!(!traces::events(&partial).is_empty());
                }
                let mut changed = bytes.clone();
                changed[cut] ^= 1 << (cut % 8);
                match traces::import(&changed) {
                    Ok(recording) => drop(traces::events(&recording)),
                    Err(error) => drop(error.into_partial().map(|it| traces::events(&it))),
                }
            }
        }
    }
}

#[test]
fn damage_in_a_gzip_file_is_told_as_that() {
    let mut bytes = traces::gzip(three());
    let checksum = bytes.len() - 8;
    bytes[checksum] ^= 1;
    let error = traces::import(&bytes).expect_err("a wrong checksum");
    assert!(
        matches!(error.kind(), ImportErrorKind::Damaged { .. }),
        "{error}"
    );
    let partial = error.into_partial().expect("three events");
    assert_eq!(traces::counts(&partial), [0, 3, 0, 0]);
    assert_eq!(traces::skipped(&partial), [(Skip::Truncated, 1)]);
}

#[test]
fn a_gzip_file_may_have_several_members() {
    let text = three();
    let (first, second) = text.split_at(text.len() / 2);
    let bytes = [traces::gzip(first), traces::gzip(""), traces::gzip(second)].concat();
    assert_eq!(traces::counts(&traces::sound(bytes)), [0, 3, 0, 0]);
}

#[test]
fn what_decompresses_to_more_than_allowed_is_refused() {
    // 64 MiB of spaces behind a kernel, in about 64 kB.
    let bomb = format!("[{}, {}", kernel(1), " ".repeat(64 << 20));
    let packed = traces::gzip(bomb);
    assert!(packed.len() < 100_000);
    let settings = Settings::default().text_bytes_at_most(1 << 20);
    let error = traces::import_with(&packed, settings).expect_err("too much");
    assert!(
        matches!(
            error.kind(),
            ImportErrorKind::TooMuchText { limit: 1_048_576 }
        ),
        "{error}"
    );
    let partial = error.into_partial().expect("one event");
    assert_eq!(traces::counts(&partial), [0, 1, 0, 0]);

    let text = three();
    let exactly = Settings::default().text_bytes_at_most(text.len() as u64);
    assert!(traces::import_with(text.as_bytes(), exactly).is_ok());
    let one_less = Settings::default().text_bytes_at_most(text.len() as u64 - 1);
    assert!(traces::import_with(text.as_bytes(), one_less).is_err());
}

#[test]
fn what_is_no_trace_is_told_as_that() {
    for text in [
        "",
        "  \n",
        "7",
        "null",
        "\"traceEvents\"",
        "{}",
        "{\"traceEvents\": null}",
        "{\"events\": [1, 2]}",
        "<html>",
        "SQLite format 3\0",
        "\u{1f}",
    ] {
        let error = traces::import(text).expect_err("no trace");
        assert!(
            matches!(error.kind(), ImportErrorKind::NotATrace),
            "{text}: {error}"
        );
        assert!(error.into_partial().is_none(), "{text}");
    }
    assert_eq!(traces::counts(&traces::sound("[]")), [0; 4]);
    assert_eq!(
        traces::counts(&traces::sound("\u{feff} {\"traceEvents\": []}\n")),
        [0; 4]
    );
}

#[test]
fn text_that_is_no_json_is_told_with_its_place() {
    let one = kernel(1);
    for (text, at) in [
        (format!("[{one} {one}]"), 2 + one.len()),
        (format!("[{one}, ]"), 3 + one.len()),
        (format!("[{one}}}"), 1 + one.len()),
        (format!("[{one}] {{}}"), 3 + one.len()),
        (
            format!("{{\"traceEvents\": [{one}], 7: 8}}"),
            20 + one.len(),
        ),
        (
            format!("{{\"traceEvents\": [{one}], \"a\" 8}}"),
            24 + one.len(),
        ),
        (
            format!("{{\"traceEvents\": [{one}], \"a\": ?}}"),
            25 + one.len(),
        ),
    ] {
        let error = traces::import(&text).expect_err("no JSON");
        let ImportErrorKind::Malformed { at: found, .. } = *error.kind() else {
            panic!("{text}: {error}");
        };
        assert_eq!(found, at as u64, "{text}");
        let partial = error.into_partial().expect("one event");
        assert_eq!(traces::counts(&partial), [0, 1, 0, 0], "{text}");
    }
}

#[test]
fn a_reader_that_fails_is_told_and_what_it_gave_is_kept() {
    struct Fails<'t>(&'t [u8]);
    impl std::io::Read for Fails<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() {
                return Err(std::io::Error::other("the disk is gone"));
            }
            // One byte at a time, and so the start of the file, too.
            into[0] = self.0[0];
            self.0 = &self.0[1..];
            Ok(1)
        }
    }
    let text = format!("[{},", kernel(1));
    for bytes in [text.clone().into_bytes(), {
        let mut packed = traces::gzip(text);
        packed.truncate(packed.len() - 8);
        packed
    }] {
        let error = lineage_kineto::import_from(Fails(&bytes), Settings::default(), &mut |_| {})
            .expect_err("the reader fails");
        assert!(matches!(error.kind(), ImportErrorKind::Read(_)), "{error}");
        let partial = error.into_partial().expect("one event");
        assert_eq!(traces::counts(&partial), [0, 1, 0, 0]);
    }
}

#[test]
fn a_file_that_is_not_there_cannot_be_opened() {
    let error = lineage_kineto::import("no/such/file", Settings::default(), &mut |_| {})
        .expect_err("no such file");
    assert!(matches!(error.kind(), ImportErrorKind::Open(_)), "{error}");
}

#[test]
fn progress_rises_to_the_size_of_the_file() {
    let folder = traces::in_repository().join("kineto");
    let path = folder.join("leimao_manual_capture.json.gz");
    let size = std::fs::metadata(&path)
        .expect("a file of the repository")
        .len();
    let mut seen = Vec::new();
    lineage_kineto::import(&path, Settings::default(), &mut |progress| {
        seen.push(progress)
    })
    .expect("a sound trace");
    assert!(seen.len() > 1);
    assert!(
        seen.iter()
            .all(|progress| progress.bytes_in_all == Some(size))
    );
    assert!(seen.is_sorted_by_key(|progress| progress.bytes_read));
    assert_eq!(seen.last().map(|progress| progress.bytes_read), Some(size));
}
