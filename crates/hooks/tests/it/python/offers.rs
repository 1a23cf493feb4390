//! What plugins offer besides hooks, tools and slash commands.

use petasos_testkit::within;

use super::{World, hooked};

const COMMANDS: &str = r#"
import sys
def setup(parser):
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("words", nargs="*")
def say(args):
    print("\n".join([" ".join(args.words)] * args.times))
    print("beside", file=sys.stderr)
    return 3
def nested(parser):
    inner = parser.add_subparsers()
    inner.add_parser("on").set_defaults(func=lambda args: print("switched on"))
def register(ctx):
    ctx.register_cli_command("say", help="Says it.", setup_fn=setup, handler_fn=say)
    ctx.register_cli_command(name="switch", help="Switches.", setup_fn=nested, handler_fn=None)
    ctx.register_cli_command("ends", "Ends.", None, lambda args: sys.exit("no more"))
    ctx.register_cli_command("half", "Has nothing to do.", None, None)
"#;

#[tokio::test]
async fn commands_of_the_command_line_parse_their_words_and_print() {
    let world = World::with(&[("talks", COMMANDS)]).await;
    let names: Vec<String> = world.hosts.cli_commands().into_iter().map(|command| command.name).collect();
    assert_eq!(names, ["say", "switch", "ends"]);
    let run = async |name: &str, words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let printed = within("the command", world.hosts.run_cli_command(name, &words)).await.unwrap();
        (printed.code, printed.stdout, printed.stderr)
    };
    assert_eq!(run("say", &["--times", "2", "a", "b"]).await, (3, "a b\na b\n".into(), "beside\n".into()));
    let (code, _, stderr) = run("say", &["--times", "often"]).await;
    assert!(
        code == 2 && stderr.contains("petasos say: error:") && stderr.contains("often"),
        "{code} {stderr}"
    );
    assert_eq!(run("switch", &["on"]).await, (0, "switched on\n".into(), String::new()));
    let (code, stdout, _) = run("switch", &[]).await;
    assert!(code == 1 && stdout.contains("usage: petasos switch"), "{code} {stdout}");
    assert_eq!(run("ends", &[]).await, (1, String::new(), "no more\n".into()));
    assert!(within("nothing", world.hosts.run_cli_command("other", &[])).await.is_err());
}

#[tokio::test]
async fn skills_are_named_after_their_plugin_and_what_has_no_use_is_known() {
    let code = r##"
import pathlib
def register(ctx):
    here = pathlib.Path(__file__).parent
    (here / "SKILL.md").write_text("# Tea")
    ctx.register_skill("tea", here / "SKILL.md", description="Makes tea.")
    ctx.register_skill("here", here)
    ctx.register_skill("with:colon", here)
    ctx.register_skill("nowhere", here / "nothing")
    ctx.register_platform("irc", "IRC", None)
    ctx.register_platform("xmpp", "XMPP", None)
"##;
    let world = World::with(&[("kitchen", code)]).await;
    let skills = world.hosts.skills();
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["kitchen:tea", "kitchen:here"]);
    assert!(skills[0].path.ends_with("kitchen/SKILL.md") && skills[0].description == "Makes tea.");
    assert_eq!(world.hosts.ignored(), [("kitchen".to_owned(), "register_platform".to_owned())]);
}

#[tokio::test]
async fn modules_of_the_user_come_before_ours() {
    let code = hooked(
        "pre_llm_call",
        "import sys\nsys.path.insert(0, os.environ['WORLD'])\nimport gateway\nreturn gateway.WHOSE",
    );
    let world = World::with(&[("own", &code)]).await;
    std::fs::write(world.home.path().join("gateway.py"), "WHOSE = 'mine'\n").unwrap();
    assert_eq!(world.context("x").await.as_deref(), Some("mine"));
}
