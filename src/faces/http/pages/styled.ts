import { createHash } from 'node:crypto';
import { html, raw } from 'hono/html';

/** A page that is allowed this style alone, and no script at all. */
export function styledPage(title: string, style: string, content: ReturnType<typeof html>) {
  const hash = createHash('sha256').update(style).digest('base64');
  return {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    },
    body: String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Throughline: ${title}</title>
<style>${raw(style)}</style>
</head>
<body>
${content}
</body>
</html>
`),
  };
}
