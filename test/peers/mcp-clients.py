"""Drives the official Python client: a line of JSON for each call, and one for each result."""
import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def serve(client):
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        job = json.loads(line)
        if job["name"] == "tools/list":
            result = await client.list_tools()
        else:
            result = await client.call_tool(job["name"], job["arguments"])
        print(result.model_dump_json(by_alias=True, exclude_none=True), flush=True)


async def main():
    way = json.loads(sys.argv[1])
    if "url" in way:
        headers = {"Authorization": f"Bearer {way['key']}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            async with Client(streamable_http_client(way["url"], http_client=http)) as client:
                await serve(client)
    else:
        program, *args = way["command"]
        started = StdioServerParameters(command=program, args=args, env={**os.environ, **way["env"]})
        async with Client(stdio_client(started)) as client:
            await serve(client)


asyncio.run(main())
