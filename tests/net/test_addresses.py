"""Law: an address that nobody meant is never connected to, however it is written."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterwatch.errors import AfterwatchError, Unavailable, UserError
from afterwatch.net.addresses import checked, means_private, refused

NEVER = ["169.254.169.254", "169.254.1.1", "fe80::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "0.0.0.0", "::"]
NEVER += ["224.0.0.1", "ff02::1", "255.255.255.255", "100.100.100.200", "fd00:ec2::254", "2002:a9fe:a9fe::1"]
PRIVATE = ["127.0.0.1", "::1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "fd12::1", "::ffff:10.0.0.1", "100.64.0.1"]
PRIVATE += ["64:ff9b::7f00:1", "2002:7f00:1::"]
PUBLIC = ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"]


@pytest.mark.parametrize("text", NEVER)
@pytest.mark.parametrize("private", [True, False])
def test_link_local_and_no_mans_addresses_are_never_connected_to(text: str, private: bool) -> None:
    assert refused(ipaddress.ip_address(text), private=private)


@pytest.mark.parametrize("text", PRIVATE)
def test_private_addresses_need_somebody_who_meant_them(text: str) -> None:
    assert refused(ipaddress.ip_address(text), private=False)
    assert not refused(ipaddress.ip_address(text), private=True)


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_allowed(text: str) -> None:
    assert not refused(ipaddress.ip_address(text), private=False)


@given(st.ip_addresses())
def test_what_is_refused_where_private_is_allowed_is_refused_elsewhere(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if refused(address, private=True):
        assert refused(address, private=False)


@pytest.mark.parametrize("bad", ["127.0.0.1", "169.254.169.254"])
def test_one_bad_address_among_good_ones_refuses_the_name(bad: str) -> None:
    with pytest.raises(UserError) as caught:
        checked("models.example", 443, private=False, resolver=lambda host, port: [PUBLIC[0], bad])
    assert caught.value.code == "net_refused"
    assert caught.value.remedy


def test_an_unknown_name_is_unavailable() -> None:
    def nobody(host: str, port: int) -> list[str]:
        return []

    with pytest.raises(Unavailable):
        checked("models.example", 443, private=False, resolver=nobody)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1"])
def test_odd_spellings_of_loopback_count_as_names(host: str) -> None:
    with pytest.raises(AfterwatchError):
        checked(host, 80, private=False, resolver=lambda host, port: ["127.0.0.1"])


def test_who_writes_an_address_means_it() -> None:
    assert means_private("127.0.0.1", ())
    assert means_private("LocalHost.", ())
    assert means_private("[::1]", ())
    assert means_private("models.corp.example", ("Models.corp.example",))
    assert not means_private("models.corp.example", ("corp.example",))
