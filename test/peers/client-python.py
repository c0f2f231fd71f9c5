"""Makes the calls of the Python client that the lines of stdin name, and answers each with a line. Each is made by both clients in turn, or by one."""

import asyncio
import base64
import json
import sys

import pillarbox


def plain(value):
    return {"octets": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def sync(job, args, options):
    with pillarbox.Pillarbox(job["url"], job["key"], card_key=job.get("card_key")) as client:
        if job["method"] == "events":
            found, cuts = [], []
            stream = client.events(**options, on_reconnect=lambda error: cuts.append(error.code)).ready()
            print(json.dumps({"ready": True}), flush=True)
            for event in stream:
                found.append(event)
                if len(found) >= args[0]:
                    return {"events": found, "cuts": cuts}
        target = client
        for name in job["method"].split("."):
            target = getattr(target, name)
        answer = target(*args, **options)
        return list(answer) if job.get("iterate") else answer


async def later(job, args, options):
    async with pillarbox.AsyncPillarbox(job["url"], job["key"], card_key=job.get("card_key")) as client:
        if job["method"] == "events":
            found, cuts = [], []
            stream = await client.events(**options, on_reconnect=lambda error: cuts.append(error.code)).ready()
            print(json.dumps({"ready": True}), flush=True)
            async for event in stream:
                found.append(event)
                if len(found) >= args[0]:
                    return {"events": found, "cuts": cuts}
        target = client
        for name in job["method"].split("."):
            target = getattr(target, name)
        answer = target(*args, **options)
        return [row async for row in answer] if job.get("iterate") else await answer


for line in sys.stdin:
    job = json.loads(line)
    args = [base64.b64decode(one["octets"]) if isinstance(one, dict) and "octets" in one else one for one in job["args"]]
    options = job.get("options", {})
    try:
        if "url" not in job:
            told = getattr(pillarbox, job["method"])(*args, **options)
        elif job.get("asyncio"):
            told = asyncio.run(later(job, args, options))
        else:
            told = sync(job, args, options)
        print(json.dumps({"answer": plain(told)}), flush=True)
    except pillarbox.PillarboxError as error:
        about = {name: getattr(error, name) for name in ("code", "type", "param", "status", "request_id", "retry_after", "message")}
        print(json.dumps({"error": {"class": type(error).__name__, **about}}), flush=True)
