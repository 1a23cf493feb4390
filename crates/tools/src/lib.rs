//! The built-in tools and the seam that runs them.
