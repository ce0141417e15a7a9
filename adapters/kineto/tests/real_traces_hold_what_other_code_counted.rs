//! Of every real trace the importer counts what code that is not ours counted.

mod traces;

use std::path::Path;

use lineage_kineto::Settings;

/// Rows of the table in this folder, by file: calls, kernels, copies, sets.
fn expected(table: &Path) -> Vec<(String, [u64; 4])> {
    let text = std::fs::read_to_string(table).expect("a table of what is expected");
    let mut rows = text
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let header = rows.next().expect("a header");
    let columns = ["api_calls", "kernels", "memcpys", "memsets"]
        .map(|name| header.iter().position(|column| *column == name));
    rows.map(|row| {
        let count = |column: Option<usize>| row[column.expect("the column")].parse();
        let counts = columns.map(|column| count(column).expect("a count"));
        (row[0].trim_start_matches("kineto/").to_owned(), counts)
    })
    .collect()
}

fn check(folder: &Path, rows: Vec<(String, [u64; 4])>) -> usize {
    let mut checked = 0;
    for (file, counts) in rows {
        let path = folder.join("kineto").join(&file);
        if !path.is_file() {
            continue;
        }
        let recording = lineage_kineto::import(&path, Settings::default(), &mut |_| {})
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(traces::counts(&recording), counts, "{file}");
        assert_eq!(traces::skipped(&recording), [], "{file}");
        assert_eq!(recording.holdings().notes, [""; 0], "{file}");
        assert_eq!(recording.holdings().processes.len(), 1, "{file}");
        checked += 1;
    }
    checked
}

#[test]
fn those_of_the_repository() {
    let folder = traces::in_repository();
    let rows = expected(&folder.join("expected.tsv"));
    assert_eq!(check(&folder, rows), 14);
}

#[test]
fn all_there_are() {
    let Some(folder) = traces::all() else { return };
    let rows = expected(&folder.join("expected_kineto.tsv"));
    assert_eq!(check(&folder, rows), 18);
}
