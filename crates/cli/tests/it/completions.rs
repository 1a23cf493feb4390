//! `petasos completions`.

use crate::installation::Installation;

#[test]
fn every_shell_gets_a_script() {
    let installation = Installation::new();
    for (shell, word) in
        [("bash", "complete -F _petasos"), ("zsh", "#compdef petasos"), ("fish", "complete -c petasos")]
    {
        let script = installation.run(&["completions", shell]);
        assert!(script.success && script.stdout.contains(word), "{shell}: {}", script.stderr);
        assert!(script.stdout.contains("doctor"), "{shell}");
    }
    assert_eq!(installation.run(&["completions", "cmd"]).code, Some(1));
    assert!(!installation.home().exists());
}
