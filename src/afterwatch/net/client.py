"""The outbound client, one a server: checked address, capped answers, no strange redirects, redacted bodies.

Proxies of the environment are not used: through one, the address that is connected to could not be checked.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import httpx2

from afterwatch import __version__
from afterwatch.errors import AfterwatchError, Unavailable, UserError
from afterwatch.net.addresses import Resolve, checked, literal, means_private, resolve
from afterwatch.net.settings import NetSettings
from afterwatch.security.redaction import redact

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
MOST_SECONDS = 120.0
"""How long one JSON exchange may take in all: a server that drips bytes must not hold us."""
MOST_JSON = 32_000_000
HOPS = 3
CHUNK = 1 << 16

_STATUS = {
    401: "check the key in the environment variable that the setting names",
    403: "check the key, and whether it may use this model",
    404: "check the address and the name of the model",
    413: "the server takes less text at a time",
    429: "the server limits the rate: wait, then try again",
}


@dataclass(frozen=True)
class Body:
    """An answer that is read in parts.

    `status` is 200 or 206; `start` the first byte's place in the whole; `total` the bytes of the whole, if said.
    """

    status: int
    start: int
    total: int | None
    chunks: Iterator[bytes]


class Client:
    """Speaks to one server: the origin of `base`, and hosts below `redirects` when that server sends us there."""

    def __init__(
        self,
        base: str,
        settings: NetSettings,
        *,
        key: str = "",
        redirects: Sequence[str] = (),
        resolver: Resolve = resolve,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is connected yet.

        Args:
            base: address of the service from the settings, such as https://models.example/v1.
            settings: the rules of this installation.
            key: sent as a bearer token, to this server alone.
            redirects: domains that this server may send us to, by https, without the key.
            resolver: for tests.
            clock: seconds, for the limit of one exchange.

        Raises:
            UserError: no such address, or plain http to a public host.
        """
        self._base = _parse(base)
        self._private = means_private(self._base.host, settings.private_hosts)
        self._settings, self._resolver, self._clock = settings, resolver, clock
        self._redirects = tuple(one.lower() for one in redirects)
        if self._base.scheme == "http" and not self._private:
            raise UserError(f"{self.server} would get text unencrypted", remedy="use https", code="net_plain")
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._http = httpx2.Client(
            transport=_Checked(self._address),
            timeout=httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            headers={"user-agent": f"afterwatch/{__version__}"},
            trust_env=False,
        )

    @property
    def server(self) -> str:
        """Scheme, host and port: what may be said of the address."""
        return _server(self._base)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # -- speaking -----------------------------------------------------------------------------------------------

    def post_json(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a document, every text in it redacted, and return the answer's.

        Raises:
            Unavailable: no connection, no 200, or no JSON of at most 32 MB within two minutes.
            UserError: the address is refused.
        """
        url = self._base.copy_with(path=self._base.path.rstrip("/") + path)
        content = json.dumps(redacted(body), ensure_ascii=False).encode("utf-8", "replace")
        headers = {**self._headers, "content-type": "application/json"}
        with self._sent("POST", url, headers, content) as response:
            self._require(response, (200,))
            data = self._whole(response)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Unavailable(
                f"{self.server} did not answer with JSON", remedy=_STATUS[404], code="net_answer"
            ) from error

    @contextmanager
    def fetch(self, start: int = 0) -> Iterator[Body]:
        """Get the file at the base address, from byte `start` on if the server can.

        Raises:
            Unavailable: as by `post_json`; its code is `net_range` if the server has no such byte.
        """
        headers = {**self._headers, "accept-encoding": "identity", **({"range": f"bytes={start}-"} if start else {})}
        with self._followed(headers) as response:
            if response.status_code == 416:
                raise Unavailable(f"{self.server} has no byte {start}", remedy="begin anew", code="net_range")
            self._require(response, (200, 206))
            first, total = _extent(response)
            yield Body(response.status_code, first, total, self._chunks(response))

    # -- inside -------------------------------------------------------------------------------------------------

    @contextmanager
    def _followed(self, headers: Mapping[str, str]) -> Iterator[httpx2.Response]:
        url = self._base
        for _ in range(HOPS):
            with self._sent("GET", url, self._headers_for(url, headers)) as response:
                if not response.has_redirect_location:
                    yield response
                    return
                url = self._next(url, response)
        raise Unavailable(
            f"{self.server} sends us from place to place", remedy="check the address", code="net_redirect"
        )

    def _next(self, url: httpx2.URL, response: httpx2.Response) -> httpx2.URL:
        """Where a redirect leads: the same server, or one that it was said to use."""
        try:
            found = url.join(response.headers["location"])
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise Unavailable(f"{self.server} redirects to nowhere", code="net_redirect") from error
        same = (found.scheme, found.host, found.port) == (self._base.scheme, self._base.host, self._base.port)
        known = found.scheme == "https" and any(
            found.host == one or found.host.endswith(f".{one}") for one in self._redirects
        )
        if not (same or known) or found.userinfo:
            raise Unavailable(
                f"{self.server} redirects to another server, {found.host!r}",
                remedy="name the address where the file really is",
                code="net_redirect",
            )
        return found

    def _headers_for(self, url: httpx2.URL, headers: Mapping[str, str]) -> Mapping[str, str]:
        if url.host == self._base.host and url.port == self._base.port:
            return headers
        return {name: value for name, value in headers.items() if name != "authorization"}

    @contextmanager
    def _sent(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], content: bytes | None = None
    ) -> Iterator[httpx2.Response]:
        if self._settings.offline:
            raise Unavailable("net.offline is set: nothing is sent", remedy="unset it first", code="net_offline")
        try:
            with self._http.stream(method, url, headers=dict(headers), content=content) as response:
                yield response
        except AfterwatchError:
            raise
        except httpx2.TimeoutException as error:
            raise Unavailable(
                f"{self.server} does not answer in time", remedy="try again", code="net_timeout"
            ) from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            what = "cannot be reached" if isinstance(error, httpx2.ConnectError) else "broke the connection off"
            raise Unavailable(
                f"{self.server} {what}", remedy="check that the server runs", code="net_failed"
            ) from error

    def _address(self, url: httpx2.URL) -> str:
        """The checked address of a request; hosts that we were redirected to are never private."""
        own = url.host == self._base.host
        port = url.port or (443 if url.scheme == "https" else 80)
        return checked(url.host, port, private=own and self._private, resolver=self._resolver)

    def _require(self, response: httpx2.Response, wanted: Sequence[int]) -> None:
        status = response.status_code
        if status not in wanted:
            # the body is not quoted: it is a stranger's, and some servers repeat the key in it
            raise NetStatusError(f"{self.server} answered {status}", status, _STATUS.get(status, "try again later"))

    def _whole(self, response: httpx2.Response) -> bytes:
        deadline = self._clock() + MOST_SECONDS
        parts, size = [], 0
        for part in response.iter_bytes(CHUNK):
            parts.append(part)
            size += len(part)
            if size > MOST_JSON:
                raise Unavailable(f"{self.server} answered with more than {MOST_JSON} bytes", code="net_too_large")
            if self._clock() > deadline:
                raise Unavailable(f"{self.server} does not come to an end", remedy="try again", code="net_timeout")
        return b"".join(parts)

    def _chunks(self, response: httpx2.Response) -> Iterator[bytes]:
        yield from response.iter_raw(CHUNK)


class NetStatusError(Unavailable):
    """The server answered, but not with success; `status` is its number."""

    code = "net_status"

    def __init__(self, message: str, status: int, remedy: str) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status


class _Checked(httpx2.BaseTransport):
    """Connects to the address that was checked, while certificate and Host header stay those of the name."""

    def __init__(self, address: Callable[[httpx2.URL], str]) -> None:
        self._address = address
        # no connection is kept: one to an address must not serve another name on it
        limits = httpx2.Limits(max_keepalive_connections=0)
        self._inner = httpx2.HTTPTransport(trust_env=False, limits=limits)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        address = self._address(request.url)
        if literal(request.url.host) is None:
            request.extensions = {**request.extensions, "sni_hostname": request.url.host}
        request.url = request.url.copy_with(host=address)
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


def redacted(value: Any) -> Any:
    """The same document with every text redacted."""
    if isinstance(value, str):
        return redact(value).text
    if isinstance(value, Mapping):
        return {str(name): redacted(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [redacted(part) for part in value]
    return value


def _parse(base: str) -> httpx2.URL:
    try:
        url = httpx2.URL(base)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise UserError("that is no address of a server", remedy="write https://host/path", code="net_url") from error
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.fragment:
        raise UserError(
            "an address begins with https:// and holds no name, password or fragment",
            remedy="write https://host/path; a key comes from an environment variable",
            code="net_url",
        )
    return url


def _server(url: httpx2.URL) -> str:
    return f"{url.scheme}://{url.host}" + (f":{url.port}" if url.port else "")


def _extent(response: httpx2.Response) -> tuple[int, int | None]:
    """(first byte, bytes in all) of an answer."""
    if response.status_code == 206:
        unit, _, rest = response.headers.get("content-range", "").partition(" ")
        span, _, total = rest.partition("/")
        first = span.partition("-")[0]
        if unit == "bytes" and first.isdecimal():
            return int(first), int(total) if total.isdecimal() else None
        raise Unavailable("the server sent a part without saying which", code="net_answer")
    length = response.headers.get("content-length", "")
    return 0, int(length) if length.isdecimal() else None
