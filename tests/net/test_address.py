"""Checks of web addresses: ambiguous spellings and every way to write a private address."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.refusal import Refusal
from sightline.net import IpAddress, WebAddress, is_allowed_address, parse_web_address
from tests.refusals import assert_refusal
from tests.requirements import requirement

METADATA = ["169.254.169.254", "169.254.0.23", "100.100.100.200", "fd00:ec2::254", "168.63.129.16", "192.0.0.192"]

TRICKS = {
    "hexadecimal": "https://0x7f.1/",
    "one hexadecimal number": "https://0x7f000001/",
    "one number": "https://2130706433/",
    "octal": "https://0177.0.0.1/",
    "a leading zero": "https://127.0.0.01/",
    "too few parts": "https://127.1/",
    "too many parts": "https://127.0.0.1.1/",
    "a hexadecimal last part": "https://127.0.0.0x1/",
    "a literal with a last dot": "https://127.0.0.1./",
    "a name with a last dot": "https://metadata.google.internal./",
    "two dots": "https://example..com/",
    "a name of the local network": "https://intranet/",
    "localhost": "https://localhost/",
    "metadata": "https://metadata/",
    "a percent sign": "https://%31%32%37.0.0.1/",
    "full-width digits": "https://１２７.0.0.1/",
    "letters in circles": "https://ⓔxample.com/",
    "an ideographic full stop": "https://127。0。0。1/",
    "an international name": "https://exämple.com/",
    "a soft hyphen": "https://exam\u00adple.com/",
    "a dash at the end of a label": "https://example-.com/",
    "a zone": "https://[fe80::1%25eth0]/",
    "words behind a literal": "https://[2606:4700::1]example.com/",
    "a name in brackets": "https://[example.com]/",
    "a port that is none": "https://example.com:x/",
    "a label that is too long": f"https://{'a' * 64}.com/",
    "a name that is too long": f"https://{'a.' * 130}com/",
    "no host": "https:///image.png",
    "only a port": "https://:443/",
}


@requirement("net.public")
@pytest.mark.parametrize("url", TRICKS.values(), ids=TRICKS)
def test_an_incomplete_host_name_is_refused(url: str) -> None:
    found = parse_web_address(url)
    assert isinstance(found, Refusal)
    assert found.code in ("not_permitted", "invalid_input")
    assert found.remedy


@requirement("net.https")
@pytest.mark.parametrize(
    "url",
    ["http://example.com/", "HTTP://example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/",
     "data:image/png;base64,AAAA", "//example.com/", "example.com/image.png", ""],
)  # fmt: skip
def test_only_https_is_allowed(url: str) -> None:
    found = parse_web_address(url)
    assert isinstance(found, Refusal)
    assert found.code == "not_permitted"


@requirement("net.credentials")
@pytest.mark.parametrize(
    "url", ["https://me:secret@example.com/", "https://example.com@127.0.0.1/", "https://@example.com/", "https://a:@b.com"]
)  # fmt: skip
def test_credentials_in_an_address_are_refused_and_not_repeated(url: str) -> None:
    no = parse_web_address(url)
    assert_refusal(no, "not_permitted", "credentials")
    assert not any(part in str(no) for part in ("secret", "example", "127.0.0.1", "b.com"))


@requirement("net.port")
@pytest.mark.parametrize("port", [0, 22, 80, 8443, 65535, 99999])
def test_another_port_is_refused(port: int) -> None:
    assert isinstance(parse_web_address(f"https://example.com:{port}/"), Refusal)


@pytest.mark.parametrize(
    "url",
    ["https://example.com/\r\nhost: evil.com", "https://example.com/a b", "https://example.com\\@evil.com/",
     "\thttps://example.com/", "https://exam\nple.com/", "https://example.com/\ud800",
     "https://[::1", f"https://a.com/{'x' * 9000}"],
)  # fmt: skip
def test_an_ambiguous_address_is_refused(url: str) -> None:
    found = parse_web_address(url)
    assert isinstance(found, Refusal)
    assert found.code == "invalid_input"


@requirement("net.metadata")
@pytest.mark.parametrize(
    "name",
    ["metadata", "metadata.google.internal", "METADATA.google.internal", "metadata.azure.com",
     "metadata.aws.amazon.com"],
)  # fmt: skip
def test_a_metadata_service_is_refused_by_name(name: str) -> None:
    assert isinstance(parse_web_address(f"https://{name}/latest/meta-data/"), Refusal)


@requirement("net.metadata")
@pytest.mark.parametrize("address", METADATA)
def test_a_metadata_address_is_always_refused(address: str) -> None:
    metadata = ip_address(address)
    assert not is_allowed_address(metadata)
    assert not is_allowed_address(metadata, extra_addresses=frozenset({metadata}))
    if isinstance(metadata, IPv4Address):
        assert not any(
            is_allowed_address(form, extra_addresses=frozenset({metadata, form})) for form in disguises(metadata)
        )


def test_an_address_is_normalized() -> None:
    assert parse_web_address("HTTPS://Example.COM") == WebAddress("example.com", 443, "/", False)
    assert parse_web_address("https://example.com:443/a%20b?q=1&r=ü#part") == WebAddress(
        "example.com", 443, "/a%20b?q=1&r=%C3%BC", False
    )
    assert parse_web_address("https://a_b.example.com/ä/../") == WebAddress(
        "a_b.example.com", 443, "/%C3%A4/../", False
    )
    assert parse_web_address("https://xn--exmple-cua.com/") == WebAddress("xn--exmple-cua.com", 443, "/", False)
    assert parse_web_address("https://8.8.8.8/") == WebAddress("8.8.8.8", 443, "/", True)
    assert parse_web_address("https://[2606:4700:0::1]/") == WebAddress("2606:4700::1", 443, "/", True)


def test_a_url_is_rebuilt_from_its_parts() -> None:
    assert WebAddress("2606:4700::1", 443, "/x", True).url == "https://[2606:4700::1]/x"
    assert WebAddress("example.com", 8443, "/x?y", False).url == "https://example.com:8443/x?y"


@given(st.text() | st.text().map("https://".__add__) | st.text("0123456789abcdefx.:[]%@/\\").map("https://".__add__))
def test_any_text_is_an_address_or_a_refusal(text: str) -> None:
    found = parse_web_address(text)
    assert isinstance(found, WebAddress | Refusal)
    if isinstance(found, WebAddress):
        assert parse_web_address(found.url) == found


PRIVATE = [
    *("0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.1.1", "172.16.0.1"),
    *("172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "203.0.113.1"),
    *("198.51.100.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::7f00:1", "fc00::1", "fd12:3456::1", "fe80::1", "fec0::1", "ff02::1", "100::1", "5f00::1"),
    *("2001::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::", "3fff::1", "64:ff9b:1::7f00:1", "2606:4700::1%eth0"),
]  # fmt: skip


@requirement("net.public")
@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_outside_the_public_web_are_refused(address: str) -> None:
    assert not is_allowed_address(ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "172.32.0.1", "223.255.255.255", "2606:4700::1", "2a00:1450::1"]
)
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_allowed_address(ip_address(address))


def disguises(address: IPv4Address) -> list[IpAddress]:
    return [IPv6Address(f"::ffff:{address}"), IPv6Address(f"64:ff9b::{address}")]


@requirement("net.public")
@given(st.ip_addresses(v=4))
def test_every_spelling_of_an_address_is_judged_alike(address: IPv4Address) -> None:
    assert [is_allowed_address(form) for form in disguises(address)] == [is_allowed_address(address)] * 2


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6) | st.ip_addresses(v=6, network="2000::/3"))
def test_addresses_private_by_ipaddress_are_refused(address: IpAddress) -> None:
    if is_allowed_address(address):
        inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        assert (inner or address).is_global
