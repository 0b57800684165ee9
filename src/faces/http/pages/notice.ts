import { createHash } from 'node:crypto';
import { html, raw } from 'hono/html';

const STYLE =
  'body { font: 16px/1.55 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1.25rem; } :root { color-scheme: light dark; background: Canvas; }';
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** What a person in a browser is told where the page itself is not shown. */
export function notice(title: string, text: ReturnType<typeof html>) {
  return {
    headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY },
    body: String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Throughline: ${title}</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<h1>${title}</h1>
${text}
</body>
</html>
`),
  };
}

/** The link that was followed is none that works. */
export const NO_LINK = notice(
  'This link was already used, or has expired',
  html`<p>A link signs a browser in once, within 15 minutes. If this browser is signed in already: <a href="/">open the page</a>.</p>
<p>Otherwise run <code>throughline link</code> on the machine of the server, or ask whoever gave you this one for another.</p>`,
);

/** A link on another site may be one that its reader does not mean to open, so it is not used up before they say so. */
export function askToSignIn(code: string) {
  return notice(
    'Sign this browser in?',
    html`<p>You followed a link that signs this browser in to Throughline. It works once.</p>
<p><a href="/enter?code=${encodeURIComponent(code)}">Sign in and open the page</a></p>
<p>If you did not expect such a link, close this tab.</p>`,
  );
}
