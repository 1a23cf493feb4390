//! The terminal: its settings, and what was typed there and not read yet.

use std::io::stdin;

use nix::libc::_POSIX_VDISABLE;
use nix::sys::termios::{self, FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, Termios};

/// Has the terminal stop putting line ends into what is pasted, which the editor had it do.
const PLAIN_PASTE: &str = "\x1b[?2004l";

/// Forgets what was typed and not read: it was meant for something that was asked before.
pub(crate) fn forget_typed() {
    // Where there is no terminal, nothing was typed.
    let _ = termios::tcflush(stdin(), FlushArg::TCIFLUSH);
}

/// The terminal's settings as they were. Puts them back when it is dropped.
pub(crate) struct Before(Termios);

impl Before {
    /// Remembers the settings.
    pub(crate) fn keep() -> nix::Result<Before> {
        termios::tcgetattr(stdin()).map(Before)
    }

    /// Hides what is typed from now on. The keys that stop the program or end it at once do nothing meanwhile: the
    /// shell that would come up shows what is typed.
    pub(crate) fn hide() -> nix::Result<Before> {
        let before = Before::keep()?;
        let mut hidden = before.0.clone();
        hidden.local_flags.remove(LocalFlags::ECHO);
        for key in [SpecialCharacterIndices::VSUSP, SpecialCharacterIndices::VQUIT] {
            hidden.control_chars[key as usize] = _POSIX_VDISABLE;
        }
        termios::tcsetattr(stdin(), SetArg::TCSADRAIN, &hidden)?;
        Ok(before)
    }

    /// Puts everything back that the editor changes, too.
    pub(crate) fn put_back(self) {
        let _ = crate::output::text(PLAIN_PASTE);
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        // There is nothing more to try.
        let _ = termios::tcsetattr(stdin(), SetArg::TCSADRAIN, &self.0);
    }
}
