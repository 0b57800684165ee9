// A client for the stand-in model: streamed messages of the Anthropic API.

export type Block =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'image';
      readonly source: { readonly type: 'base64'; readonly media_type: string; readonly data: string };
    }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly type: 'tool_result'; readonly tool_use_id: string; readonly content: string };

export interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: readonly Block[];
}

const TOOL = {
  name: 'Bash',
  description: 'Runs a command.',
  input_schema: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
};

interface Frame {
  readonly type: string;
  readonly content_block?: { readonly type: string; readonly id?: string; readonly name?: string };
  readonly delta?: { readonly type?: string; readonly text?: string; readonly partial_json?: string };
}

/** Returns the blocks of the answer. `onText` gets each part of the text as soon as it arrives. */
export async function askModel(
  messages: readonly Message[],
  options: { readonly tools: boolean; readonly signal: AbortSignal; readonly onText: (text: string) => Promise<void> },
): Promise<Block[]> {
  const response = await fetch(`${process.env.MODEL_URL}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'test-model',
      max_tokens: 1_000,
      stream: true,
      system: 'You are an agent of the tests.',
      tools: options.tools ? [TOOL] : [],
      messages,
    }),
    signal: options.signal,
  });
  if (!response.ok) throw new Error(`API Error: ${response.status} ${await response.text()}`);
  const answer: Block[] = [];
  let json = '';
  for await (const frame of framesOf(response)) {
    const { content_block: block, delta } = frame;
    if (block?.type === 'text') answer.push({ type: 'text', text: '' });
    if (block?.type === 'tool_use') {
      json = '';
      answer.push({ type: 'tool_use', id: block.id ?? '', name: block.name ?? '', input: {} });
    }
    const last = answer.at(-1);
    if (delta?.text !== undefined && last?.type === 'text') {
      answer[answer.length - 1] = { type: 'text', text: last.text + delta.text };
      await options.onText(delta.text);
    }
    if (delta?.partial_json !== undefined && last?.type === 'tool_use') {
      json += delta.partial_json;
      answer[answer.length - 1] = { ...last, input: JSON.parse(json) };
    }
  }
  return answer;
}

async function* framesOf(response: Response): AsyncGenerator<Frame> {
  let rest = '';
  for await (const text of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data: ')) yield JSON.parse(line.slice(6)) as Frame;
  }
}
