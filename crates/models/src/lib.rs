//! One trait, a stream of model deltas, and the model providers behind it.
