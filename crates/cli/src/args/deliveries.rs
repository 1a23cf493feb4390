//! Arguments of `deliveries`.

use clap::{Args, Subcommand, ValueEnum};

use super::{ConnectArgs, FormatArgs, ListArgs};

const EXAMPLES: &str = "\
Examples:
  petasos deliveries list --status dead
  petasos deliveries list --session session_0199… --json
  petasos deliveries show dlv_0199…
  petasos deliveries replay dlv_0199…
  petasos deliveries credentials --tenant acme

A delivery that no receiver took after all its attempts is dead. Replaying it makes a new delivery
with the same body and webhook-id; the old record stays.";

/// Arguments of `deliveries`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DeliveriesArgs {
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: DeliveriesCommand,
}

/// What to do with deliveries.
#[derive(Subcommand)]
pub(crate) enum DeliveriesCommand {
    /// List deliveries, newest first
    List {
        /// Which of them.
        #[command(flatten)]
        filter: DeliveryFilterArgs,
        /// How much is shown.
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show one delivery with its attempts
    Show {
        /// The delivery
        id: String,
    },
    /// Deliver the same once more
    Replay {
        /// The delivery
        id: String,
    },
    /// Print the token and the signing secret that a tenant's receivers know deliveries by
    Credentials,
}

/// Which deliveries are listed.
#[derive(Args)]
pub(crate) struct DeliveryFilterArgs {
    /// Only those that stand there
    #[arg(long, value_enum)]
    pub(crate) status: Option<DeliveryStatusArg>,
    /// Only those about this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only those of this run
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
}

/// Where a delivery stands.
#[derive(ValueEnum, Clone, Copy)]
pub(crate) enum DeliveryStatusArg {
    /// On its way
    Pending,
    /// Taken by its receiver
    Delivered,
    /// Given up
    Dead,
    /// No longer wanted
    Cancelled,
}

impl DeliveryStatusArg {
    /// The status as the server writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            DeliveryStatusArg::Pending => "pending",
            DeliveryStatusArg::Delivered => "delivered",
            DeliveryStatusArg::Dead => "dead",
            DeliveryStatusArg::Cancelled => "cancelled",
        }
    }
}
