//! The terminal: its settings, and what was typed there and not read yet.

use std::io::stdin;

use nix::libc::_POSIX_VDISABLE;
use nix::sys::termios::{self, FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, Termios};

/// Forgets what was typed and not read: it was meant for something that was asked before.
pub(crate) fn forget_typed() {
    // Where there is no terminal, nothing was typed.
    let _ = termios::tcflush(stdin(), FlushArg::TCIFLUSH);
}

/// The terminal's settings as they were. Puts them back when it is dropped.
pub(crate) struct Before(Termios);

impl Before {
    /// Hides what is typed from now on. The keys that stop the program or end it at once do nothing meanwhile: the
    /// shell that would come up shows what is typed.
    pub(crate) fn hide() -> nix::Result<Before> {
        let before = termios::tcgetattr(stdin())?;
        let mut hidden = before.clone();
        hidden.local_flags.remove(LocalFlags::ECHO);
        for key in [SpecialCharacterIndices::VSUSP, SpecialCharacterIndices::VQUIT] {
            hidden.control_chars[key as usize] = _POSIX_VDISABLE;
        }
        termios::tcsetattr(stdin(), SetArg::TCSADRAIN, &hidden)?;
        Ok(Before(before))
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        // There is nothing more to try.
        let _ = termios::tcsetattr(stdin(), SetArg::TCSADRAIN, &self.0);
    }
}
