//! How each runtime is driven.

pub mod async_std;
pub mod smol;
mod std;
pub mod tokio;
mod uring;

use crate::blocking::Blocking;
use crate::over::Over;

/// Long enough to find most answers; in microseconds.
const LOOKING: u64 = 500;

pub type Std = Blocking<std::Std>;
pub type Uring = Blocking<uring::Uring>;
pub type StdLooking = Blocking<std::Std, LOOKING>;
pub type UringLooking = Blocking<uring::Uring, LOOKING>;
pub type TokioCurrentThread = Over<tokio::CurrentThread>;
pub type TokioMultiThread = Over<tokio::MultiThread>;
pub type Smol = Over<smol::Smol>;
pub type AsyncStd = Over<async_std::AsyncStd>;
