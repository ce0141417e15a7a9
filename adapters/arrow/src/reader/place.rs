//! Where a run directory is: on disk, or in memory for tests and fuzzing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::limits::{EXTENSION, MAX_DIRECTORIES, MAX_SEGMENTS, META, segment_number};

/// A run directory.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Folder(PathBuf),
    /// Files by their path in the directory, such as `000001/launches.arrows`.
    Memory(Arc<BTreeMap<String, Vec<u8>>>),
}

/// What can be read from any place.
pub(super) trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// A file that is read from its beginning.
pub(super) struct Stream {
    pub(super) bytes: Box<dyn ReadSeek>,
    /// Its length when it was opened.
    pub(super) length: u64,
}

impl Place {
    /// What a person calls it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Folder(path) => path.display().to_string(),
            Self::Memory(_) => "(memory)".to_owned(),
        }
    }

    /// Opens a file; `None` if it is not there.
    pub(super) fn open(&self, file: &str) -> io::Result<Option<Stream>> {
        match self {
            Self::Folder(path) => match File::open(path.join(file)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
                Ok(file) => {
                    let metadata = file.metadata()?;
                    if !metadata.is_file() {
                        return Err(io::Error::other("not a plain file"));
                    }
                    Ok(Some(Stream {
                        length: metadata.len(),
                        bytes: Box::new(file),
                    }))
                }
            },
            Self::Memory(files) => Ok(files.get(file).map(|bytes| Stream {
                length: bytes.len() as u64,
                bytes: Box::new(Cursor::new(bytes.clone())),
            })),
        }
    }

    /// The numbers of its segments, in order.
    pub(super) fn segments(&self) -> io::Result<Vec<u64>> {
        let mut numbers = BTreeSet::new();
        let mut add = |name: &str| {
            if let Some(number) = segment_number(name)
                && numbers.len() < MAX_SEGMENTS
            {
                numbers.insert(number);
            }
        };
        match self {
            Self::Folder(path) => {
                for entry in std::fs::read_dir(path)? {
                    let name = entry?.file_name();
                    name.to_str().into_iter().for_each(&mut add);
                }
            }
            Self::Memory(files) => files
                .keys()
                .filter_map(|file| file.split_once('/'))
                .for_each(|(segment, _)| add(segment)),
        }
        Ok(numbers.into_iter().collect())
    }
}

/// The run directories that a path names: itself, or those in it, in order of their names.
pub(super) fn directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.join(META).exists() || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let inner = entry?.path();
        let ours = inner.extension().is_some_and(|of| of == EXTENSION);
        if ours && inner.join(META).exists() && found.len() < MAX_DIRECTORIES {
            found.push(inner);
        }
    }
    found.sort();
    if found.is_empty() {
        found.push(path.to_owned());
    }
    Ok(found)
}
