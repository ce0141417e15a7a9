//! The model on the device: memory, kernels and the two things that the engine asks for. Nothing
//! here knows of lineage. What is called is what any program calls through cudarc.

use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DriverError, LaunchConfig,
    PushKernelArg,
};
use cudarc::nvrtc::Ptx;

use crate::model::layout::{
    ANSWER_BYTES, ANSWER_PROBABILITIES, ANSWER_TOKENS, BATCH_BYTES, BATCH_SLOTS, PROMPT_BYTES,
    PROMPT_LENGTH, PROMPT_SLOT, PROMPT_TOKENS, WEIGHTS_BYTES,
};
use crate::model::reference::Token;
use crate::model::weights::Weights;
use crate::model::{DIMENSION, PTX, SLOTS, VOCABULARY};

/// What pads a batch has states of its own, behind those of the slots: a padded batch is at most
/// twice as large as what is in it.
const STATES: usize = 2 * SLOTS;

/// One stream, and everything that its kernels read and write.
pub struct Device {
    stream: Arc<CudaStream>,
    kernels: Kernels,
    weights: CudaSlice<u8>,
    prompt: CudaSlice<u8>,
    batch: CudaSlice<u8>,
    hidden: CudaSlice<f32>,
    logits: CudaSlice<f32>,
    probabilities: CudaSlice<f32>,
    answer: CudaSlice<u8>,
}

struct Kernels {
    embed_prompt: CudaFunction,
    gemv: CudaFunction,
    softmax: CudaFunction,
    arg_max: CudaFunction,
    embed_next: CudaFunction,
}

/// What a decode step gives: the label that came back from the device with the answer, and a token
/// for each member.
pub struct Answer {
    /// Written by the kernel that chose the tokens, from where its argument points.
    pub label: u64,
    /// In the order of the batch.
    pub tokens: Vec<Token>,
}

impl Device {
    /// Opens device 0 and copies the weights to it. For batches that will be padded, the states of the
    /// padding are set to 0, too.
    pub fn open(weights: &Weights, padded: bool) -> Result<Self, DriverError> {
        let context = CudaContext::new(0)?;
        // SAFETY: all memory is used on the one stream below, so its order is all that is needed.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream()?;
        let module = context.load_module(Ptx::from_src(PTX))?;
        // SAFETY: bytes and `f32` have no invalid values, and everything is written before it is
        // read: the weights and the padding here, a prompt before its kernel, a slot by its prompt,
        // the rest by the kernel before.
        let mut device = unsafe {
            Self {
                kernels: Kernels::load(&module)?,
                weights: stream.alloc(WEIGHTS_BYTES)?,
                prompt: stream.alloc(PROMPT_BYTES)?,
                batch: stream.alloc(BATCH_BYTES)?,
                hidden: stream.alloc(STATES * DIMENSION)?,
                logits: stream.alloc(SLOTS * VOCABULARY)?,
                probabilities: stream.alloc(SLOTS * VOCABULARY)?,
                answer: stream.alloc(ANSWER_BYTES)?,
                stream,
            }
        };
        device
            .stream
            .memcpy_htod(&weights.image(), &mut device.weights)?;
        if padded {
            let mut padding = device.hidden.slice_mut(SLOTS * DIMENSION..);
            // A copy rather than a set: it begins with its label, 0.
            device
                .stream
                .memcpy_htod(&[0.0; (STATES - SLOTS) * DIMENSION], &mut padding)?;
        }
        device.stream.synchronize()?;
        Ok(device)
    }

    /// The stream that everything is launched on.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Reads a prompt into the state of a slot: a copy and a kernel.
    pub fn prefill(&mut self, label: u64, slot: u32, prompt: &[u8]) -> Result<(), DriverError> {
        let mut bytes = [0; PROMPT_BYTES];
        bytes[..PROMPT_SLOT].copy_from_slice(&label.to_le_bytes());
        bytes[PROMPT_SLOT..PROMPT_LENGTH].copy_from_slice(&slot.to_le_bytes());
        bytes[PROMPT_LENGTH..PROMPT_TOKENS].copy_from_slice(&(prompt.len() as u32).to_le_bytes());
        bytes[PROMPT_TOKENS..][..prompt.len()].copy_from_slice(prompt);
        self.stream
            .memcpy_htod(&bytes[..PROMPT_TOKENS + prompt.len()], &mut self.prompt)?;

        let mut launch = self.stream.launch_builder(&self.kernels.embed_prompt);
        launch
            .arg(&label)
            .arg(&self.weights)
            .arg(&self.prompt)
            .arg(&mut self.hidden);
        // SAFETY: the kernel's parameters are these four; the prompt and the slot lie inside their
        // buffers.
        unsafe { launch.launch(grid(1, DIMENSION)) }?;
        Ok(())
    }

    /// Tells the device whom the batch is for and which slots it consists of, and what pads it: a copy.
    pub fn form_batch(&mut self, label: u64, slots: &[u32]) -> Result<(), DriverError> {
        let mut bytes = [0; BATCH_BYTES];
        bytes[..BATCH_SLOTS].copy_from_slice(&label.to_le_bytes());
        let padding = SLOTS as u32..STATES as u32;
        let slots = slots.iter().copied().chain(padding);
        for (place, slot) in bytes[BATCH_SLOTS..].chunks_exact_mut(4).zip(slots) {
            place.copy_from_slice(&slot.to_le_bytes());
        }
        self.stream.memcpy_htod(&bytes, &mut self.batch)
    }

    /// Computes the next token of each of the first `members` of the batch: four kernels.
    pub fn decode(&mut self, members: usize) -> Result<(), DriverError> {
        let Kernels {
            gemv,
            softmax,
            arg_max,
            embed_next,
            ..
        } = &self.kernels;
        let blocks = members as u32;
        // The batch begins with its label, so its address is the label's.
        let label = &self.batch;

        let mut launch = self.stream.launch_builder(gemv);
        launch
            .arg(label)
            .arg(&self.weights)
            .arg(&self.batch)
            .arg(&self.hidden)
            .arg(&mut self.logits);
        // SAFETY: the kernel's parameters are these five; a block for each member of a batch of at
        // most `SLOTS`, padding included.
        unsafe { launch.launch(grid(blocks, VOCABULARY)) }?;

        let mut launch = self.stream.launch_builder(softmax);
        launch
            .arg(label)
            .arg(&self.logits)
            .arg(&mut self.probabilities);
        // SAFETY: the kernel's parameters are these three; blocks as above.
        unsafe { launch.launch(grid(blocks, 1)) }?;

        let mut launch = self.stream.launch_builder(arg_max);
        launch
            .arg(label)
            .arg(&self.probabilities)
            .arg(&mut self.answer);
        // SAFETY: the kernel's parameters are these three; blocks as above.
        unsafe { launch.launch(grid(blocks, 1)) }?;

        let mut launch = self.stream.launch_builder(embed_next);
        launch
            .arg(label)
            .arg(&self.weights)
            .arg(&self.batch)
            .arg(&self.answer)
            .arg(&mut self.hidden);
        // SAFETY: the kernel's parameters are these five; blocks as above.
        unsafe { launch.launch(grid(blocks, DIMENSION)) }?;
        Ok(())
    }

    /// Copies back what was computed for the batch's `members`, and waits for it.
    pub fn answer(&self, members: usize) -> Result<Answer, DriverError> {
        let mut bytes = [0; ANSWER_BYTES];
        self.stream.memcpy_dtoh(&self.answer, &mut bytes)?;
        self.stream.synchronize()?;
        Ok(read_answer(&bytes, members))
    }
}

impl Kernels {
    fn load(module: &Arc<CudaModule>) -> Result<Self, DriverError> {
        Ok(Self {
            embed_prompt: module.load_function("embed_prompt")?,
            gemv: module.load_function("gemv")?,
            softmax: module.load_function("softmax")?,
            arg_max: module.load_function("arg_max")?,
            embed_next: module.load_function("embed_next")?,
        })
    }
}

fn grid(blocks: u32, threads: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (blocks, 1, 1),
        block_dim: (threads as u32, 1, 1),
        shared_mem_bytes: 0,
    }
}

fn read_answer(bytes: &[u8; ANSWER_BYTES], members: usize) -> Answer {
    let word = |offset: usize| {
        let bytes = [
            bytes[offset],
            bytes[offset + 1],
            bytes[offset + 2],
            bytes[offset + 3],
        ];
        u32::from_le_bytes(bytes)
    };
    Answer {
        label: u64::from(word(0)) | u64::from(word(4)) << 32,
        tokens: (0..members)
            .map(|member| Token {
                byte: word(ANSWER_TOKENS + 4 * member) as u8,
                probability: f32::from_bits(word(ANSWER_PROBABILITIES + 4 * member)),
            })
            .collect(),
    }
}
