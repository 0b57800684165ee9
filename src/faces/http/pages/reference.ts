import { html } from 'hono/html';
import type { DescribedOperation, OpenApi } from '../../../wire/openapi.ts';
import { styledPage } from './styled.ts';

const STYLE = `
:root { color-scheme: light dark; background: Canvas; --line: color-mix(in srgb, currentColor 18%, transparent); }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 56rem; margin: 0 auto; padding: 2rem 1.25rem 6rem; }
h1 { font-size: 1.6rem; margin-bottom: .25rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
code, pre { font: .875rem/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .75rem 1rem; border: 1px solid var(--line); border-radius: .5rem; }
details { border-bottom: 1px solid var(--line); } summary { cursor: pointer; padding: .6rem 0; overflow-wrap: anywhere; }
summary b { display: inline-block; min-width: 4.5rem; font: 600 .8rem ui-monospace, monospace; }
.note { opacity: .75; } dt { font-family: ui-monospace, monospace; font-size: .875rem; } dd { margin: 0 0 .5rem 1.25rem; }
`;

/** The OpenAPI document for people: one page without scripts. */
export function referencePage(document: OpenApi) {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => operationOf(method.toUpperCase(), path, operation)),
  );
  const schemas = Object.entries(document.components.schemas).map(([name, schema]) => schemaOf(name, schema));
  return styledPage(
    'the HTTP interface',
    STYLE,
    html`<h1>Throughline</h1>
<p>Conversations that outlive agent sessions. This is the HTTP interface of this server;
<a href="/openapi.json">openapi.json</a> is the same for programs. People use <a href="/">the page</a>.</p>
<h2>Authentication</h2>
<p>Send the token of the data home, or a key from <code>throughline keys create</code>:</p>
<pre>curl -H "Authorization: Bearer $(cat HOME/server/token)" http://…/v1/conversations</pre>
<p class="note">After signing in with a one-time link, this browser may also open <a href="/v1/conversations">/v1/conversations</a>.
Bodies are JSON. Errors are problem details (RFC 9457) with a <code>code</code>, a <code>detail</code> and a <code>hint</code>.</p>
<h2>Operations</h2>
${operations}
<h2>Values</h2>
${schemas}`,
  );
}

function operationOf(method: string, path: string, operation: DescribedOperation) {
  const { summary, parameters = [], requestBody, responses } = operation;
  const [status = '', answer] = Object.entries(responses)[0] ?? [];
  const [type = '', { schema = {} } = {}] = Object.entries(answer?.content ?? {})[0] ?? [];
  return html`<details><summary><b>${method}</b> <code>${path}</code><br><span class="note">${summary}</span></summary>
<dl>
${parameters.map((one) => html`<dt>${one.name}</dt><dd>${one.in}${one.required ? ', required' : ''}: <code>${JSON.stringify(one.schema).replaceAll('"', '')}</code></dd>`)}
${requestBody ? html`<dt>body</dt><dd>${link(requestBody.content['application/json'].schema)}${requestBody.required ? ', required' : ''}</dd>` : ''}
<dt>${status}</dt><dd>${type}: ${link(schema)}</dd>
<dt>scope</dt><dd>${operation['x-scope']}</dd>
</dl></details>
`;
}

function schemaOf(name: string, schema: object) {
  return html`<details id="${name}"><summary><code>${name}</code></summary><pre>${JSON.stringify(schema, null, 2)}</pre></details>
`;
}

function link(schema: object) {
  const name =
    String((schema as { $ref?: string }).$ref ?? '')
      .split('/')
      .at(-1) ?? '';
  return html`<a href="#${name}"><code>${name}</code></a>`;
}
