/// What mitmproxy runs of ours: it asks the lab, over a connection for each request, what is to become of it.
enum MitmproxyAddon {
    /// The name of the variable with the port on which the lab listens for questions.
    static let portVariable = "COUNTERSIGN_LAB_PORT"

    /// For mitmproxy 11, in Python. A question is a line, then HTTP; an answer is a request to be forwarded, or a response to be given, or
    /// nothing, which cuts the connection.
    static let script = """
        from asyncio import IncompleteReadError, open_connection
        from os import environ

        from mitmproxy import ctx, http
        from mitmproxy.net.http import http1


        async def tell(line, message=b""):
            reader, writer = await open_connection("127.0.0.1", int(environ["\(portVariable)"]))
            writer.write(line.encode() + b"\\n" + message)
            await writer.drain()
            return reader, writer


        async def mention(line):
            reader, writer = await tell(line)
            await reader.read()  # until it was taken down
            writer.close()


        async def read(reader):
            lines = (await reader.readuntil(b"\\r\\n\\r\\n")).split(b"\\r\\n")[:-2]
            is_response = lines[0].startswith(b"HTTP/")
            message = http1.read_response_head(lines) if is_response else http1.read_request_head(lines)
            message.raw_content = await reader.readexactly(int(message.headers.get("content-length", 0)))
            return message


        class Asking:
            async def running(self):
                address = ctx.master.addons.get("proxyserver").listen_addrs()[0]
                await mention(f"running {address[1]}")

            async def tls_established_client(self, data):
                await mention("handshake")

            async def tls_failed_client(self, data):
                await mention(f"broken off {data.conn.error}")

            async def request(self, flow):
                flow.metadata["lab"] = await tell("request", http1.assemble_request(flow.request))
                await self.decide(flow)

            async def response(self, flow):
                if "lab" in flow.metadata:
                    _, writer = flow.metadata["lab"]
                    writer.write(http1.assemble_response(flow.response))
                    await self.decide(flow)

            async def error(self, flow):
                if "lab" in flow.metadata:
                    flow.metadata.pop("lab")[1].close()

            async def decide(self, flow):
                reader, writer = flow.metadata["lab"]
                try:
                    answer = await read(reader)
                except (IncompleteReadError, ConnectionError):
                    flow.metadata.pop("lab")
                    flow.kill()
                    return
                if isinstance(answer, http.Response):
                    flow.metadata.pop("lab")[1].close()
                    flow.response = answer
                else:
                    flow.request.data.method = answer.data.method
                    flow.request.data.path = answer.data.path
                    flow.request.headers = answer.headers
                    flow.request.raw_content = answer.raw_content


        addons = [Asking()]

        """
}
