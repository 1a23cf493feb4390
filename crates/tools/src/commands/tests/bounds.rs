//! Whatever a command is made of, it takes no more than so much to judge it.

use super::*;

#[test]
fn a_command_that_grows_too_large_is_not_run() {
    let doubling: String = (1..35).map(|n| format!("a{n}=$a{0}$a{0};", n - 1)).collect();
    for text in [
        format!("a0=xxxxxxxxxxxxxxxx;{doubling}echo hi"),
        format!("a0='x y z';{doubling}echo hi"),
        format!("a='{}';{}", " ".repeat(50_000), "$a".repeat(20_000)),
        "\"$(a);\"".repeat(14_000),
        "$(a);".repeat(20_000),
        "a;".repeat(50_000),
        "env ".repeat(25_000),
        "a=1 ".repeat(25_000),
        "${a:-".repeat(20_000),
        "$(".repeat(50_000),
        "(".repeat(100_000),
        "{ ".repeat(50_000),
        "a(){".repeat(25_000),
        format!("printf '{}%s' {}", "x".repeat(50_000), "1 ".repeat(20_000)),
        format!("echo {} {}", "x".repeat(50_000), "| cat".repeat(9_000)),
        format!("echo {} {}", "x".repeat(50_000), "| tee f".repeat(7_000)),
        format!("echo {} | ({})", "x".repeat(50_000), "cat;".repeat(12_000)),
        format!("echo {} > f; cat {}", "x".repeat(50_000), "f ".repeat(20_000)),
        format!("echo {} > f; {}", "x".repeat(50_000), "a < f;".repeat(8_000)),
        format!("echo {} | {}a", "x ".repeat(25_000), "xargs ".repeat(8_000)),
        format!("{}{{a,b}}", "{a,b}".repeat(15_000)),
        format!("a={};{}", "x".repeat(20), "$a".repeat(40_000)),
        "{ ( sh; } <<E\n".repeat(7_000),
        format!("$({}", "cat <<E\n".repeat(12_000)),
    ] {
        assert!(size(&text) < 10 * MAX_COMMAND, "{}", text.get(..40).unwrap_or_default());
    }
    let (text, ends) = ("x".repeat(20_000), "; }".repeat(100));
    for text in [
        format!("a0=xx;{doubling}$a34"),
        format!("a={text};{}", "a+=x;".repeat(100)),
        // What a group prints goes to the one around.
        format!("{}echo {text}{ends}", "{ echo a; ".repeat(100)),
    ] {
        let Risk::Forbidden { reason } = judge(&text, &Approvals::default()).risk else { panic!("{text}") };
        assert!(reason.contains("longer than can be checked"), "{reason}");
    }
}

#[test]
fn calls_within_calls_and_functions_are_bounded() {
    for text in [
        format!("{}ls{}", "$(".repeat(5_000), ")".repeat(5_000)),
        format!("python3 -c '{}'", "system(".repeat(14_000)),
        format!("python3 -c '{}'", "exec(x);".repeat(12_000)),
        format!("awk '{}'", "|x".repeat(40_000)),
        format!("vim -c '{}'", "|!x".repeat(30_000)),
        format!("make --eval='{}'", "$(shell ".repeat(12_000)),
        format!("f(){{ {} }}; f", "echo a;".repeat(10_000)),
        "f(){ f;f; };f;g(){ f;f;};g;g;".repeat(500),
        "$((".repeat(33_000),
        "a=(".repeat(33_000),
        format!("set -- {};{}", "a ".repeat(20_000), "$@;".repeat(10_000)),
        format!("rm -rf /{}", "[a-z]*".repeat(15_000)),
        "*".repeat(99_000),
        format!("/{}", "*[".repeat(45_000)),
        "a ".repeat(49_000),
        format!("while read x; do {} done <<< 'rm -rf x'", "$x;".repeat(30_000)),
        format!("foo {}", "'rm -rf x' ".repeat(9_000)),
        format!("cat > a.rs <<E\n{}E\nrustc a.rs", "Command::new(\"a\").arg(\"b\");\n".repeat(3_000)),
        format!("python3 -c '{}'", "a=os.system;".repeat(8_000)),
        format!("vim -c '{}'", "silent !a|".repeat(9_000)),
        format!("docker run {}a rm /h", "-v /:/h ".repeat(4_900)),
        format!("docker run -v /:/h a sh -c '{}'", "/h ".repeat(30_000)),
        "exec 3<<<x; sh <&3;".repeat(5_000),
        "exec <<< x;".repeat(9_000),
        format!("ftp <<E\n{}E\n", "!a\n".repeat(30_000)),
        format!("git {}x", "-c alias.x='!git x' ".repeat(4_900)),
        format!("cat ~/{}/x", "*a".repeat(49_000)),
        format!("echo '{}' | sed x | sed x | grep x | sh", "a b\n".repeat(20_000)),
    ] {
        assert!(size(&text) < 10 * MAX_COMMAND, "{}", text.get(..40).unwrap_or_default());
    }
}

/// How many bytes the words have that a command is read into, if it is.
fn size(text: &str) -> usize {
    let Ok(script) = script::Script::read(text) else { return 0 };
    let _ = assess(text, &script, &Approvals::default());
    script.commands.iter().flat_map(|command| &command.words).map(|word| word.len() + 1).sum()
}

proptest::proptest! {
    #[test]
    fn nothing_grows_without_end(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "a=", "b=", "$a", "$b", "\"$a$b\"", "${a:-$b}", "$(echo $a)", "`echo $b$b`", ";", " ", "|", "\n",
                "echo $a", "printf %s%s", "| sh", "| xargs", "| cat", "| tee f", "sh f", "> f", "cat f f", "< f", "eval $a", "{a,b}",
                "f(){ ", "f ", "set -- $a $b", "\"$@\"", "a=(", "${a[@]}", "${a%x}", "case x in a) ", ";; esac", "[[ ", " ]]",
                "((", "))", "python3 -c '$a'", "awk '{ system(\"$a\") }'", "for a in $a $b; do ", "; done", "parallel ",
                "(", ")", "{ ", "; }", "bash -c '$a$a'", "<(echo $a)", "env ", "x",
            ]),
            0..120,
        ),
    ) {
        let text = pieces.concat();
        proptest::prop_assert!(size(&text) < 10 * MAX_COMMAND);
    }
}
