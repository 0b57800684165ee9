import { html } from 'hono/html';
import { styledPage } from './styled.ts';

const STYLE =
  'body { font: 16px/1.55 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1.25rem; } :root { color-scheme: light dark; background: Canvas; }';

/** A short text for a person in a browser, where the page itself is not shown. */
export function notice(title: string, text: ReturnType<typeof html>) {
  return styledPage(
    title,
    STYLE,
    html`<h1>${title}</h1>
${text}`,
  );
}

/** The link that was followed does not work. */
export const NO_LINK = notice(
  'This link was already used, or has expired',
  html`<p>A link signs a browser in once, within 15 minutes. If this browser is signed in already: <a href="/">open the page</a>.</p>
<p>Otherwise run <code>throughline link</code> on the machine of the server, or ask the person who gave you this link for another.</p>`,
);

/** A person may follow a link on another site by mistake, so it is used only after a confirmation. */
export function askToSignIn(code: string) {
  return notice(
    'Sign this browser in?',
    html`<p>You followed a link that signs this browser in to Throughline. It works once.</p>
<p><a href="/enter?code=${encodeURIComponent(code)}">Sign in and open the page</a></p>
<p>If you did not expect such a link, close this tab.</p>`,
  );
}
