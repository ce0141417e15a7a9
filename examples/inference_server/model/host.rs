//! The kernels as host functions, for the simulated GPU. Written from the formulas in the
//! [module's text](super), as the PTX is; they share no code with the reference.

use lineage_sim::{DeviceRange, Gpu, KernelResult, Launch, RegisterError};

use super::layout::{
    ANSWER_PROBABILITIES, ANSWER_TOKENS, BATCH_SLOTS, EMBEDDING, OUTPUT_MATRIX, PROMPT_LENGTH,
    PROMPT_SLOT, PROMPT_TOKENS,
};
use super::{DIMENSION, LOGITS_PER_HALVING, VOCABULARY};

/// Registers all five under the names that the PTX gives them. Parameter 0 of the first is the
/// label, and of the others its address.
pub fn register(gpu: &Gpu) -> Result<(), RegisterError> {
    gpu.kernel("embed_prompt")
        .label_argument(0)
        .run(embed_prompt)?;
    gpu.kernel("gemv").label_behind_argument(0).run(gemv)?;
    gpu.kernel("softmax")
        .label_behind_argument(0)
        .run(softmax)?;
    gpu.kernel("arg_max")
        .label_behind_argument(0)
        .run(arg_max)?;
    gpu.kernel("embed_next")
        .label_behind_argument(0)
        .run(embed_next)
}

/// `embed_prompt(label, weights, prompt, hidden)`: one block, a thread for each dimension.
fn embed_prompt(launch: &mut Launch<'_>) -> KernelResult {
    let weights: u64 = launch.argument(1)?;
    let prompt: u64 = launch.argument(2)?;
    let hidden: u64 = launch.argument(3)?;
    let slot = launch.slice::<u32>(part(prompt, PROMPT_SLOT, 1))?[0];
    let length = launch.slice::<u32>(part(prompt, PROMPT_LENGTH, 1))?[0];
    let tokens = launch
        .slice::<u8>(part(prompt, PROMPT_TOKENS, length as usize))?
        .to_vec();
    let embedding = part(weights, EMBEDDING, VOCABULARY * DIMENSION);
    let (state, [embedding]) =
        launch.write_and_read::<f32, f32, 1>(slot_of(hidden, slot), [embedding])?;
    for (d, number) in state.iter_mut().enumerate() {
        *number = 0.0;
        for token in &tokens {
            *number = (*number * 0.5).floor() + embedding[usize::from(*token) * DIMENSION + d];
        }
    }
    Ok(())
}

/// `gemv(label, weights, batch, hidden, logits)`: a block for each member, a thread for each token.
fn gemv(launch: &mut Launch<'_>) -> KernelResult {
    let weights: u64 = launch.argument(1)?;
    let batch: u64 = launch.argument(2)?;
    let hidden: u64 = launch.argument(3)?;
    let logits: u64 = launch.argument(4)?;
    for (member, slot) in members(launch, batch)? {
        let (logits, [state, output]) = launch.write_and_read::<f32, f32, 2>(
            row_of(logits, member),
            [
                slot_of(hidden, slot),
                part(weights, OUTPUT_MATRIX, DIMENSION * VOCABULARY),
            ],
        )?;
        logits.fill(0.0);
        for d in 0..DIMENSION {
            let number = if state[d] > 0.0 { state[d] } else { 0.0 };
            for v in 0..VOCABULARY {
                logits[v] += number * output[d * VOCABULARY + v];
            }
        }
    }
    Ok(())
}

/// `softmax(label, logits, probabilities)`: a block of one thread for each member.
fn softmax(launch: &mut Launch<'_>) -> KernelResult {
    let logits: u64 = launch.argument(1)?;
    let probabilities: u64 = launch.argument(2)?;
    for member in 0..launch.grid()[0] {
        let (probabilities, [logits]) = launch.write_and_read::<f32, f32, 1>(
            row_of(probabilities, member),
            [row_of(logits, member)],
        )?;
        let mut greatest = logits[0];
        for logit in logits {
            greatest = greatest.max(*logit);
        }
        let mut sum = 0.0;
        for v in 0..VOCABULARY {
            probabilities[v] = f32::exp2((logits[v] - greatest) * (1.0 / LOGITS_PER_HALVING));
            sum += probabilities[v];
        }
        for probability in probabilities {
            *probability /= sum;
        }
    }
    Ok(())
}

/// `arg_max(label, probabilities, answer)`: a block of one thread for each member.
fn arg_max(launch: &mut Launch<'_>) -> KernelResult {
    let label: u64 = launch.argument(0)?;
    let label = launch.slice::<u64>(part(label, 0, 1))?[0];
    let probabilities: u64 = launch.argument(1)?;
    let answer: u64 = launch.argument(2)?;
    launch.slice_mut::<u64>(part(answer, 0, 1))?[0] = label;
    for member in 0..launch.grid()[0] {
        let row = launch.slice::<f32>(row_of(probabilities, member))?;
        let (mut token, mut greatest) = (0, row[0]);
        for (v, probability) in row.iter().enumerate() {
            if *probability > greatest {
                (token, greatest) = (v as u32, *probability);
            }
        }
        let member = member as usize;
        launch.slice_mut::<u32>(part(answer, ANSWER_TOKENS + 4 * member, 1))?[0] = token;
        launch.slice_mut::<f32>(part(answer, ANSWER_PROBABILITIES + 4 * member, 1))?[0] = greatest;
    }
    Ok(())
}

/// `embed_next(label, weights, batch, answer, hidden)`: a block for each member, a thread for each
/// dimension.
fn embed_next(launch: &mut Launch<'_>) -> KernelResult {
    let weights: u64 = launch.argument(1)?;
    let batch: u64 = launch.argument(2)?;
    let answer: u64 = launch.argument(3)?;
    let hidden: u64 = launch.argument(4)?;
    for (member, slot) in members(launch, batch)? {
        let token = launch.slice::<u32>(part(answer, ANSWER_TOKENS + 4 * member as usize, 1))?[0];
        let row = part(
            weights,
            EMBEDDING + 4 * DIMENSION * token as usize,
            DIMENSION,
        );
        let (state, [row]) = launch.write_and_read::<f32, f32, 1>(slot_of(hidden, slot), [row])?;
        for d in 0..DIMENSION {
            state[d] = (state[d] * 0.5).floor() + row[d];
        }
    }
    Ok(())
}

/// Each block of the grid with the slot of its member.
fn members(launch: &Launch<'_>, batch: u64) -> Result<Vec<(u32, u32)>, lineage_sim::KernelError> {
    let count = launch.grid()[0] as usize;
    let slots = launch.slice::<u32>(part(batch, BATCH_SLOTS, count))?;
    Ok((0..).zip(slots.iter().copied()).collect())
}

/// `length` elements from byte `offset` of a buffer on.
fn part(buffer: u64, offset: usize, length: usize) -> DeviceRange {
    DeviceRange::new(buffer + offset as u64, length)
}

/// One slot's state.
fn slot_of(hidden: u64, slot: u32) -> DeviceRange {
    part(hidden, 4 * DIMENSION * slot as usize, DIMENSION)
}

/// One member's row of numbers, one for each token.
fn row_of(buffer: u64, member: u32) -> DeviceRange {
    part(buffer, 4 * VOCABULARY * member as usize, VOCABULARY)
}
