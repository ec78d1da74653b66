"""Error messages of failed HTTP requests."""

import os


def reason(exc: Exception) -> str:
    """Return why a request failed, without the full address that some errors show."""
    import aiohttp

    match exc:
        case aiohttp.ClientResponseError():
            why = exc.message
        case aiohttp.InvalidURL():
            why = "the address is invalid"
        case aiohttp.ClientConnectorCertificateError():
            found = exc.certificate_error
            why = f"its certificate is not trusted: {getattr(found, 'verify_message', found)}"
        case aiohttp.ClientSSLError():
            # Its number is an OpenSSL error, not a system error.
            why = f"the TLS connection failed: {exc.os_error}"
        case aiohttp.ClientOSError() if (exc.errno or 0) > 0:
            why = os.strerror(exc.errno or 0)
        case aiohttp.ClientPayloadError():
            why = "the connection was lost during the response"
        case aiohttp.ClientOSError() if not isinstance(exc, aiohttp.ClientConnectorError):
            why = "the connection was lost"
        case _:
            why = str(exc)
    return why
