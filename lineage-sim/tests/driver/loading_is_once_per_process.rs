use lineage_sim::{Config, LoadError, isolated, load};

use crate::call;
use crate::driver::Driver;

const NAME: &str = "loading_is_once_per_process";

#[test]
fn an_equal_configuration_gives_the_same_gpu_and_another_an_error() {
    isolated(
        &format!("{NAME}::an_equal_configuration_gives_the_same_gpu_and_another_an_error"),
        || {
            let first = load(Config::default()).unwrap();
            let second = load(Config::default()).unwrap();
            let driver = Driver::open();
            driver.launch(1);
            driver.synchronize();
            assert_eq!(
                (
                    first.truth().operations.len(),
                    second.truth().operations.len()
                ),
                (1, 1)
            );
            let other = load(Config::default().queue_depth(7));
            assert!(
                matches!(other, Err(LoadError::DifferentConfiguration)),
                "{other:?}"
            );
            assert!(
                other.unwrap_err().to_string().contains("isolated"),
                "it says what to do"
            );
        },
    );
}

#[test]
fn many_threads_may_load_at_once() {
    isolated(&format!("{NAME}::many_threads_may_load_at_once"), || {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| load(Config::default()).unwrap());
            }
        });
    });
}

#[test]
fn a_library_that_is_there_already_is_not_hidden() {
    isolated(
        &format!("{NAME}::a_library_that_is_there_already_is_not_hidden"),
        || {
            // The simulated library itself, loaded by somebody else.
            let folder = std::env::current_exe()
                .unwrap()
                .parent()
                .unwrap()
                .to_owned();
            let path = folder.join("liblineage_sim_cuda.so");
            // SAFETY: its initialisers do nothing.
            let library = unsafe { libloading::os::unix::Library::new(path) }.unwrap();
            // CUDA_ERROR_NO_DEVICE: nobody has configured it.
            assert_eq!(call!(library, "cuInit"(0 => u32)), 100);
            let refused = load(Config::default());
            assert!(
                matches!(
                    refused,
                    Err(LoadError::AnotherDriver {
                        soname: "libcuda.so"
                    })
                ),
                "{refused:?}"
            );
        },
    );
}

#[test]
fn libraries_that_are_not_there_are_named_with_where_they_were_looked_for() {
    isolated(
        &format!("{NAME}::libraries_that_are_not_there_are_named_with_where_they_were_looked_for"),
        || {
            let empty =
                std::env::temp_dir().join(format!("lineage-sim-empty-{}", std::process::id()));
            std::fs::create_dir_all(&empty).unwrap();
            // A file of that name that is not this build's.
            std::fs::write(empty.join("liblineage_sim_cuda-0123.so"), b"something else").unwrap();
            // SAFETY: no other thread of this process reads the environment now.
            unsafe { std::env::set_var("LINEAGE_SIM_LIBRARY_DIR", &empty) };
            let message = load(Config::default()).unwrap_err().to_string();
            std::fs::remove_dir_all(&empty).unwrap();
            assert!(
                message.contains("no built lineage_sim_cuda was found"),
                "{message}"
            );
            assert!(message.contains(&empty.display().to_string()), "{message}");
        },
    );
}

#[test]
fn a_test_under_a_wrong_name_fails() {
    if std::env::var_os("NEXTEST").is_some() {
        return;
    }
    let outcome = std::panic::catch_unwind(|| isolated("no::such_test", || {}));
    let message = *outcome.unwrap_err().downcast::<String>().unwrap();
    assert!(
        message.contains("no test named no::such_test ran"),
        "{message}"
    );
}

#[test]
fn a_failing_isolated_test_fails_with_its_words() {
    if std::env::var_os("NEXTEST").is_some() {
        return;
    }
    let name = format!("{NAME}::helper_that_fails_when_isolated");
    let outcome = std::panic::catch_unwind(|| isolated(&name, || {}));
    let message = *outcome.unwrap_err().downcast::<String>().unwrap();
    assert!(
        message.contains("the reason of the inner test"),
        "{message}"
    );
}

/// Fails, but only in the process that the test above starts.
#[test]
#[ignore = "started by another test"]
fn helper_that_fails_when_isolated() {
    isolated(&format!("{NAME}::helper_that_fails_when_isolated"), || {
        panic!("the reason of the inner test")
    });
}
