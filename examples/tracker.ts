// For programs that run an agent themselves: the tracker records sessions and requests. It never invents a session id.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'throughline';

await using tl = await open({ home: mkdtempSync(join(tmpdir(), 'throughline-')) });
const tracker = tl.tracker();

/** Stands for a program like `claude -p --resume ID`: it answers under a new session id every time. */
async function callAgent(prompt: string, resume: string | null) {
  return { reply: `You said: ${prompt}`, sessionId: resume === null ? 'abc789' : 'def012', inputTokens: prompt.length };
}

async function ask(requestId: string, prompt: string): Promise<void> {
  // Recorded with its prompt, and the conversation locked, before anything is sent. If another request is open, this waits for its
  // end. Without a session the request is pending.
  const options = { current: true, prompt, waitMs: 60_000 };
  const { sessionId: resume, status } = await tracker.trackRequest(requestId, 'agent456', null, options);
  console.log(`${requestId}: ${status}, continuing in ${resume ?? 'a session that has no name yet'}`);
  try {
    const { reply, sessionId, inputTokens } = await callAgent(prompt, resume);
    await tracker.updateRequestSession(requestId, sessionId); // the mapping agent → session moves here
    const { status } = await tracker.completeRequest(requestId, { reply, usage: { inputTokens } });
    console.log(`${requestId}: ${status} in ${sessionId}`);
  } catch (error) {
    await tracker.failRequest(requestId, { reason: String(error) }); // no watermark moves, and the lock is free
  }
}

await ask('req1', 'Hello');
await ask('req2', 'Are you still there?');

console.log('sessions:', (await tracker.sessionHistory('agent456')).join(' → '));
console.log('lock:', await tracker.lockStatus('agent456'));
console.log('turns:', (await tl.conversation('agent456').summary()).contexts);
