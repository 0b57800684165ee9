import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CliHome } from '../cli/process.ts';
import { serveProcess } from './support/served-process.ts';

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home.remove());

test('with a collector, every turn is a span with the OpenTelemetry attributes for generative AI', async () => {
  const collector = await startCollector();
  try {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
    const { caller, running } = await serveProcess(home, { env });
    const { id } = await caller.ok('POST', '/conversations', { key: 'chat' });
    const good = await caller.ok('POST', '/conversations/chat/turns', { prompt: '/usage 12 34\n/say swordfish' });
    await caller.finished(good.turn);
    const bad = await caller.ok('POST', '/conversations/chat/turns', { prompt: '/fail' });
    await caller.finished(bad.turn);
    running.kill('SIGTERM');
    await running.ended;
    const [first, second] = collector.spans();
    expect(first).toMatchObject({
      name: 'invoke_agent scripted',
      status: {},
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': 'scripted',
        'gen_ai.conversation.id': id,
        'gen_ai.usage.input_tokens': 12,
        'gen_ai.usage.output_tokens': 34,
        'throughline.turn.id': good.turn.id,
        'throughline.turn.outcome': 'completed',
        'throughline.restore.rung': 'new',
        'throughline.restore.proof': 'proved',
      },
    });
    expect(second).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'agent_failed' } });
    expect(collector.received).toContain('"throughline"');
    expect(collector.received).not.toContain('swordfish');
  } finally {
    collector.close();
  }
});

test('a server works and ends without its collector', async () => {
  const { caller, running } = await serveProcess(home, { env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' } });
  await caller.ok('POST', '/conversations', { key: 'chat' });
  await caller.finished((await caller.ok('POST', '/conversations/chat/turns', { prompt: 'hello' })).turn);
  running.kill('SIGTERM');
  expect(await running.ended).toMatchObject({ code: 0 });
});

async function startCollector() {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    bodies.push(await textOf(request));
    response.setHeader('content-type', 'application/json').end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => server.close(),
    get received() {
      return bodies.join('');
    },
    /** All spans, each with its attributes as one object. */
    spans() {
      const scopes = bodies.flatMap((body) => JSON.parse(body).resourceSpans).flatMap((one) => one.scopeSpans);
      return scopes
        .flatMap((scope) => scope.spans)
        .map(({ attributes, ...span }) => ({ ...span, attributes: Object.fromEntries(attributes.map(entryOf)) }));
    },
  };
}

function entryOf({ key, value }: { key: string; value: { stringValue?: string; intValue?: number | string } }) {
  return [key, value.stringValue ?? Number(value.intValue)];
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return text;
}
