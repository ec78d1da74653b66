"""Error messages of failed HTTP requests."""

import os


def reason(exc: Exception) -> str:
    """Return why a request failed, without the full address that some errors show."""
    from aiohttp import (
        ClientConnectorCertificateError,
        ClientConnectorError,
        ClientOSError,
        ClientPayloadError,
        ClientResponseError,
        ClientSSLError,
        InvalidURL,
    )

    match exc:
        case ClientResponseError():
            why = exc.message
        case InvalidURL():
            why = "the address is invalid"
        case ClientConnectorCertificateError():
            found = exc.certificate_error
            why = f"its certificate is not trusted: {getattr(found, 'verify_message', found)}"
        case ClientSSLError():
            # Its number is an OpenSSL error, not a system error.
            why = f"the TLS connection failed: {exc.os_error}"
        case ClientOSError() if (exc.errno or 0) > 0:
            why = os.strerror(exc.errno or 0)
        case ClientPayloadError():
            why = "the connection was lost during the response"
        case ClientOSError() if not isinstance(exc, ClientConnectorError):
            why = "the connection was lost"
        case _:
            why = str(exc)
    return why
