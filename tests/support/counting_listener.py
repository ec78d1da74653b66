"""A port that counts who comes, and answers nobody."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Listener:
    """Counts connections, and ends each at once."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self.url = f"http://127.0.0.1:{server.getsockname()[1]}"
        self._connections = 0

    def serve(self) -> None:
        """Take connections until the port is closed."""
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._connections += 1
            connection.close()

    def connections(self) -> int:
        """Return how many came so far."""
        with socket.create_connection(self._server.getsockname()) as own:
            own.recv(1)  # ends when this connection was taken, and so all before it
        self._connections -= 1
        return self._connections


@contextmanager
def listening() -> Iterator[Listener]:
    """Provide a listener on loopback."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        found = Listener(server)
        thread = threading.Thread(target=found.serve)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
