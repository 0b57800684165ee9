// A program that runs Claude's Agent SDK itself: each prompt in its own process, all in one conversation. Throughline does not
// touch Claude here. Its tracker remembers the session, keeps the history, and allows one request at a time.
// Uses your own Claude, with its login: npm install @anthropic-ai/claude-agent-sdk
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from 'throughline';

const SDK: string = '@anthropic-ai/claude-agent-sdk'; // whichever version you have installed
const [, , home, prompt] = process.argv;

if (home !== undefined && prompt !== undefined) {
  await ask(home, prompt);
} else {
  // Claude reads settings in the folders above its own. In the temporary folder, they may be those of another user.
  const own = mkdtempSync(join(homedir(), '.throughline-by-hand-'));
  try {
    for (const said of ['The codeword is amber.', 'The codeword is birch.', 'Which codewords have you seen?']) {
      const { status } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), own, said], { stdio: 'inherit' });
      if (status === 0) continue;
      process.exitCode = 1;
      break;
    }
  } finally {
    rmSync(own, { recursive: true });
  }
}

async function ask(home: string, prompt: string): Promise<void> {
  const { query } = await import(SDK).catch(() => {
    console.error(`${SDK} is not installed here. Run: npm install ${SDK}`);
    process.exit(3);
  });
  await using tl = await open({ home });
  const tracker = tl.tracker();
  const request = randomUUID();
  const session = await tracker.getAgentSession('claude');
  // Stored, and the conversation locked, before anything is sent: a second request is refused and cannot mix in.
  await tracker.trackRequest(request, 'claude', session, { prompt });
  try {
    // Claude finds a session only in the directory where it began, so the directory is always the same. If the session cannot be
    // resumed, this is an error: no new session is started silently.
    const options = { cwd: home, ...(session !== null && { resume: session }) };
    for await (const message of query({ prompt, options })) {
      // Whatever id comes back is the session from now on; the same one again changes nothing.
      if (message.session_id) await tracker.updateRequestSession(request, message.session_id);
      if (message.type !== 'result') continue;
      if (message.is_error) throw new Error(message.result ?? message.errors?.join(' '));
      const { input_tokens: inputTokens, output_tokens: outputTokens } = message.usage;
      await tracker.completeRequest(request, { reply: message.result, usage: { inputTokens, outputTokens } });
      console.log(`process ${process.pid}, ${session === null ? 'new' : 'resumed'}: ${message.result}`);
    }
  } catch (error) {
    await tracker.failRequest(request, { reason: String(error) }); // kept in the history as failed; the lock is free
    console.error(String(error));
    process.exitCode = 1;
  }
}
