// A short-lived function: it hands the prompt to a server and ends. A later call fetches the answer. It keeps nothing in between.
import { connect, statusOf, ThroughlineError } from 'throughline/client';

/** POST {id, thread, text} → 202 {turn}; GET ?turn=ID → 200 {state, reply}, 202 while the turn runs, 502 if it did not complete. */
export async function handle(request: Request): Promise<Response> {
  try {
    await using tl = await connect({
      url: process.env.THROUGHLINE_SERVER ?? '',
      token: process.env.THROUGHLINE_TOKEN ?? '', // a key with the scopes read and prompt
    });
    if (request.method === 'POST') {
      const { id, thread, text } = (await request.json()) as Record<'id' | 'thread' | 'text', string>;
      const { turn } = await tl.conversation(thread).send(text, { requestId: id }).accepted;
      return Response.json({ turn: turn.id }, { status: 202 }); // stored at the server, which runs it
    }
    const id = new URL(request.url).searchParams.get('turn') ?? '';
    const { turn, reply } = await tl.answerOf(id, { waitMs: 20_000 });
    const { state, failure } = turn;
    if (state === 'completed') return Response.json({ state, reply });
    return Response.json(
      { state, reply, code: failure?.code, message: failure?.message, hint: failure?.hint },
      { status: 502 },
    );
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    const isRunning = request.method === 'GET' && error.code === 'conflict';
    return Response.json({ code: error.code, message: error.message }, { status: isRunning ? 202 : statusOf(error) });
  }
}
