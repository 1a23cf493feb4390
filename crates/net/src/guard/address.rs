//! Which addresses are not public, and what they are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// The networks of IPv4 that are not public.
#[rustfmt::skip]
const V4: [(Ipv4Net, &str); 17] = [
    (v4([0, 0, 0, 0], 8), "an address of this network"),
    (v4([10, 0, 0, 0], 8), "a private address"),
    (v4([100, 64, 0, 0], 10), "an address that providers share"),
    (v4([127, 0, 0, 0], 8), "a loopback address"),
    (v4([168, 63, 129, 16], 32), "an address of a cloud's own services"),
    (v4([169, 254, 0, 0], 16), "a link-local address, where clouds keep metadata"),
    (v4([172, 16, 0, 0], 12), "a private address"),
    (v4([192, 0, 0, 0], 24), "an address for protocols"),
    (v4([192, 0, 2, 0], 24), "an address for documentation"),
    (v4([192, 88, 99, 0], 24), "an address of 6to4 relays"),
    (v4([192, 168, 0, 0], 16), "a private address"),
    (v4([198, 18, 0, 0], 15), "an address for benchmarks"),
    (v4([198, 51, 100, 0], 24), "an address for documentation"),
    (v4([203, 0, 113, 0], 24), "an address for documentation"),
    (v4([224, 0, 0, 0], 4), "a multicast address"),
    (v4([255, 255, 255, 255], 32), "the broadcast address"),
    (v4([240, 0, 0, 0], 4), "a reserved address"),
];

/// The networks of IPv6 that are not public. What is outside of 2000::/3 is not public either.
#[rustfmt::skip]
const V6: [(Ipv6Net, &str); 16] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "the unspecified address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), "an address with an IPv4 address in it"),
    (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), "an address with an IPv4 address in it (NAT64)"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "an address with an IPv4 address in it (NAT64)"),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 63), "an address that discards"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "an address with an IPv4 address in it (Teredo)"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "an address for documentation"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "an address for protocols"),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "an address with an IPv4 address in it (6to4)"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "an address for documentation"),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), "an address for segment routing"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a private address"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "a site-local address"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

const PUBLIC_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::from_octets(octets), prefix)
}

const fn v6(segments: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::from_segments(segments), prefix)
}

/// What an address is, unless it is public. An IPv4 address that is written as IPv6 is that IPv4 address.
pub(super) fn kind_if_not_public(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            V4.iter().find(|(network, _)| network.contains(&address)).map(|(_, kind)| *kind)
        }
        IpAddr::V6(address) => {
            let listed = V6.iter().find(|(network, _)| network.contains(&address)).map(|(_, kind)| *kind);
            let outside =
                (!PUBLIC_V6.contains(&address)).then_some("an address that is not for the internet");
            listed.or(outside)
        }
    }
}
