import asyncio

await asyncio.sleep(0.01)
print("waited")
# %%
async def forever():
    while True:
        await asyncio.sleep(0.01)


task = asyncio.create_task(forever())
# %%
asyncio.run(asyncio.sleep(0))
