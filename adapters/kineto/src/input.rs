//! The bytes of a file, decompressed on a thread of their own.

use std::io::{self, BufReader, Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope};

use flate2::bufread::MultiGzDecoder;

/// Size of a block of text. A few of them are under way at once, and all stay in the cache that
/// the two threads share.
const BLOCK_BYTES: usize = 256 * 1024;
/// How many blocks may wait for the parser.
const BLOCKS_WAITING: usize = 4;
/// How much of the file is read at once.
const READ_BYTES: usize = 128 * 1024;

/// What gzip files start with (RFC 1952, section 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Why there is no more text.
#[derive(Debug)]
pub(crate) enum End {
    /// The file was read to its end.
    OfFile,
    /// The file could not be read on.
    Unreadable(io::Error),
    /// The compressed stream breaks off.
    CutGzip,
    /// The compressed stream is damaged.
    BadGzip(io::Error),
    /// More text than the caller allows.
    TooMuch,
}

/// A block of text. Its room is used again.
struct Block {
    bytes: Box<[u8]>,
    filled: usize,
}

impl Block {
    fn new() -> Self {
        Self {
            bytes: vec![0; BLOCK_BYTES].into_boxed_slice(),
            filled: 0,
        }
    }

    /// Fills it anew: whether more may follow. What was read before an error stays.
    fn fill(&mut self, from: &mut impl Read) -> io::Result<bool> {
        self.filled = 0;
        loop {
            match from.read(&mut self.bytes[self.filled..]) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.filled += count;
                    if self.filled == self.bytes.len() {
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The text of a file, block by block.
pub(crate) struct Blocks<'scope> {
    full: Receiver<Result<Block, End>>,
    empty: SyncSender<Block>,
    bytes_read: &'scope AtomicU64,
    ended: Option<End>,
}

impl<'scope> Blocks<'scope> {
    /// Starts a thread that reads `from`, and decompresses it if it is gzip, of one member or
    /// of several. It ends by itself when the file does, or when the `Blocks` are dropped.
    /// The bytes read so far, as they lie in the file, are counted in `bytes_read`.
    pub(crate) fn read<'env>(
        scope: &'scope Scope<'scope, 'env>,
        from: impl Read + Send + 'scope,
        text_bytes_at_most: u64,
        bytes_read: &'scope AtomicU64,
    ) -> Self {
        let (give, full) = sync_channel(BLOCKS_WAITING);
        let (empty, take) = sync_channel(BLOCKS_WAITING + 2);
        let counted = Counted {
            from,
            count: bytes_read,
        };
        let reader = Builder::new().name("kineto-reader".to_owned());
        let started = reader.spawn_scoped(scope, move || {
            let end = fill_blocks(counted, text_bytes_at_most, &give, &take);
            // Nobody waits for it any more: the parser has given up on the file.
            let _ = give.send(Err(end));
        });
        Self {
            full,
            empty,
            bytes_read,
            ended: started.err().map(End::Unreadable),
        }
    }

    /// Appends the next block to `text`: how many bytes, 0 at the end.
    pub(crate) fn append_to(&mut self, text: &mut Vec<u8>) -> usize {
        if self.ended.is_some() {
            return 0;
        }
        match self.full.recv() {
            Ok(Ok(block)) => {
                let filled = block.filled;
                text.extend_from_slice(&block.bytes[..filled]);
                // Full or gone: then the block is not needed again.
                let _ = self.empty.try_send(block);
                filled
            }
            Ok(Err(end)) => {
                self.ended = Some(end);
                0
            }
            // The thread sends an end, unless `from` panicked: the scope passes that on.
            Err(_) => {
                self.ended = Some(End::OfFile);
                0
            }
        }
    }

    /// Why there is no more, once [`append_to`](Self::append_to) gave 0.
    pub(crate) fn take_end(&mut self) -> End {
        self.ended.replace(End::OfFile).unwrap_or(End::OfFile)
    }

    /// Bytes of the file that were read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }
}

fn fill_blocks(
    from: impl Read,
    text_bytes_at_most: u64,
    give: &SyncSender<Result<Block, End>>,
    take: &Receiver<Block>,
) -> End {
    let mut from = from;
    let mut start = Vec::with_capacity(GZIP_MAGIC.len());
    if let Err(error) = from
        .by_ref()
        .take(GZIP_MAGIC.len() as u64)
        .read_to_end(&mut start)
    {
        return End::Unreadable(error);
    }
    let is_gzip = start == GZIP_MAGIC;
    let whole = Cursor::new(start).chain(from);
    if !is_gzip {
        return copy(whole, text_bytes_at_most, give, take, End::Unreadable);
    }
    let whole = MultiGzDecoder::new(BufReader::with_capacity(READ_BYTES, whole));
    copy(whole, text_bytes_at_most, give, take, |error| {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => End::CutGzip,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => End::BadGzip(error),
            _ => End::Unreadable(error),
        }
    })
}

/// Copies all of `from` into blocks, until it ends or nobody takes them.
fn copy(
    mut from: impl Read,
    bytes_at_most: u64,
    give: &SyncSender<Result<Block, End>>,
    take: &Receiver<Block>,
    on_error: impl Fn(io::Error) -> End,
) -> End {
    let mut given = 0_u64;
    loop {
        let mut block = take.try_recv().unwrap_or_else(|_| Block::new());
        let end = block.fill(&mut from);
        given += block.filled as u64;
        if given > bytes_at_most {
            return End::TooMuch;
        }
        if block.filled > 0 && give.send(Ok(block)).is_err() {
            return End::OfFile;
        }
        match end {
            Ok(true) => {}
            Ok(false) => return End::OfFile,
            Err(error) => return on_error(error),
        }
    }
}

/// Counts what is read through it.
struct Counted<'c, R> {
    from: R,
    count: &'c AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
