//! Lines of bounded length from any reader, whatever it holds.

use std::io::{self, BufRead};

/// One line, as far as it could be had.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// It is in the buffer, without its line feed.
    Whole {
        /// Whether it ended with a line feed, rather than with the file.
        ended: bool,
    },
    /// It is longer than the limit; it was skipped.
    TooLong,
    /// There is none.
    EndOfFile,
}

/// Reads one line into `buffer`, which never grows beyond `limit` bytes. Counts the bytes taken
/// in `taken`.
pub(super) fn read_line<R: BufRead + ?Sized>(
    reader: &mut R,
    buffer: &mut Vec<u8>,
    limit: usize,
    taken: &mut u64,
) -> io::Result<Line> {
    buffer.clear();
    let mut too_long = false;
    let mut anything = false;
    loop {
        let available = match reader.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(match (anything, too_long) {
                (false, _) => Line::EndOfFile,
                (true, true) => Line::TooLong,
                (true, false) => Line::Whole { ended: false },
            });
        }
        anything = true;
        let feed = available.iter().position(|&byte| byte == b'\n');
        let part = &available[..feed.unwrap_or(available.len())];
        if !too_long {
            if part.len() > limit - buffer.len() {
                too_long = true;
                buffer.clear();
            } else {
                buffer.extend_from_slice(part);
            }
        }
        let used = feed.map_or(available.len(), |at| at + 1);
        reader.consume(used);
        *taken += used as u64;
        if feed.is_some() {
            return Ok(if too_long {
                Line::TooLong
            } else {
                Line::Whole { ended: true }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// All lines, with their texts, read through a buffer of this many bytes.
    fn lines(input: &[u8], buffered: usize, limit: usize) -> Vec<(Line, Vec<u8>)> {
        let mut reader = BufReader::with_capacity(buffered, input);
        let (mut buffer, mut taken, mut found) = (Vec::new(), 0, Vec::new());
        loop {
            let line = read_line(&mut reader, &mut buffer, limit, &mut taken).expect("in memory");
            assert!(buffer.len() <= limit);
            if line == Line::EndOfFile {
                assert_eq!(taken, input.len() as u64);
                return found;
            }
            found.push((line, buffer.clone()));
        }
    }

    #[test]
    fn lines_are_the_same_through_buffers_of_any_size() {
        for buffered in [1, 2, 3, 64] {
            assert_eq!(
                lines(b"ab\n\ncd", buffered, 8),
                [
                    (Line::Whole { ended: true }, b"ab".to_vec()),
                    (Line::Whole { ended: true }, Vec::new()),
                    (Line::Whole { ended: false }, b"cd".to_vec()),
                ]
            );
        }
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_and_the_next_one_is_read() {
        for buffered in [1, 3, 64] {
            assert_eq!(
                lines(b"1234\n12345\nab\n123456", buffered, 4),
                [
                    (Line::Whole { ended: true }, b"1234".to_vec()),
                    (Line::TooLong, Vec::new()),
                    (Line::Whole { ended: true }, b"ab".to_vec()),
                    (Line::TooLong, Vec::new()),
                ]
            );
        }
    }
}
