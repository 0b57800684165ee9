// The scripted agent: a real process that answers prompts by rules, without a model, and has faults on demand.
//
// Plain JavaScript with Node's own modules only, in few files: it starts about as fast as an empty program, in a checkout and in
// the published package (removing types at start would triple the time).
//
// ## What it knows
// A session knows only its prompts. It answers questions about them (answers.js):
//   which codewords have you seen?   all of them, in order: `codeword is X`, `codeword: X`, also inside a delivered record
//   how many messages …?             how many prompts it was given, and whether a conversation record was among them
//   repeat the first/last prompt     that prompt
//   what is your system prompt?      nothing should ever be in it
//   which session / directory / environment variables …?
// Anything else is acknowledged.
//
// ## What it does
// Lines of the user's message (the last text block of the prompt, never what comes before it) that begin with a slash:
//   /tool NAME [TARGET]          calls a tool: appends a line to the file TARGET, so that side effects can be counted
//   /slow-tool NAME TARGET MS    the same; the line is there at once, the tool continues for MS
//   /ask TITLE                   asks for permission; denied, it says so and leaves out the tool that follows
//   /ask! TITLE                  the same; denied, the turn fails with permission_denied
//   /say TEXT   /think TEXT      answers; thinks aloud
//   /stream CHUNKS MS            answers in so many chunks, so far apart
//   /update JSON                 reports this update (ACP) as it is: a plan, its commands, text with several lines
//   /retract                     takes back what it has said since the last tool, as after a broken connection to the model
//   /await FILE                  continues when there is such a file
//   /condense                    reports that it has replaced everything before by a summary of its own
//   /title TEXT                  offers a title for the session
//   /fail CODE [N]               the turn fails with agent_failed, too_long, …; with N only the first N times, and may be tried again
//   /die [after-tool]            kills itself; after-tool: in the next tool, after its effect and before its end
//   /exit CODE                   exits in the middle of the turn
//   /garbage                     prints lines that are not messages, and one of many megabytes; continues
//   /stderr [TEXT]               prints to stderr, with control characters
//   /hang   /hang!               never ends until cancelled; not even then
//   /usage IN OUT [MICROS]       reports these tokens, and this cost in millionths of a US dollar
//   /spent TOKENS                reports during the turn that it has used so many
//
// Its options are in options.ts, its messages in protocol.ts.

import { Connection } from './program/connection.js';
import { Session } from './program/session.js';
import { Turn } from './program/turn.js';

/** @import { ToProgram } from './protocol.ts' */

/** @type {Session | null} */
let session = null;
/** @type {Turn | null} */
let turn = null;
let inputEnded = false;

/** A process that was left behind ends itself after this time. */
const LONGEST_SURVIVAL_MS = 300_000;

const connection = new Connection(handle, () => {
  inputEnded = true;
  const { survives, lingers } = session?.options ?? {};
  if (turn ? !survives : !lingers) process.exit(0);
  turn?.deny();
  setTimeout(() => process.exit(1), LONGEST_SURVIVAL_MS);
});
void connection.listen();

/** @param {ToProgram} message */
async function handle(message) {
  switch (message.type) {
    case 'open': {
      if (message.options.startMs > 0) await new Promise((resolve) => setTimeout(resolve, message.options.startMs));
      session = new Session(message);
      connection.send(session.open());
      break;
    }
    case 'prompt':
      if (session && !turn) await run(session, message);
      break;
    case 'tools':
      if (session) session.noTools = false;
      break;
    case 'cancel':
      turn?.cancel();
      break;
    case 'answer':
      turn?.answer(message.id, message.optionId);
      break;
  }
}

/**
 * @param {Session} open
 * @param {Extract<ToProgram, { type: 'prompt' }>} prompt
 */
async function run(open, prompt) {
  turn = new Turn(open, prompt, connection);
  const outcome = await turn.run();
  turn = null;
  connection.send({ type: 'ended', prompt: prompt.id, outcome });
  if (inputEnded) process.exit(0);
}
