import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import tailwind from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** What a browser installs: it looks like a program, without the bars of the browser. */
const MANIFEST = {
  name: 'Throughline',
  short_name: 'Throughline',
  description: 'Conversations with agents that outlive their sessions',
  id: '/',
  start_url: '/',
  scope: '/',
  display: 'standalone',
  background_color: '#131416',
  theme_color: '#131416',
};

const ICONS = [
  ['icon-192', { sizes: '192x192' }],
  ['icon-512', { sizes: '512x512' }],
  ['icon-maskable', { sizes: '512x512', purpose: 'maskable' }],
] as const;

/** The manifest, which names its icons as they are called in the build. */
function manifest(): Plugin {
  return {
    name: 'throughline-manifest',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler(_html, { bundle }) {
        const named = (name: string) =>
          Object.values(bundle ?? {}).find((file) => file.type === 'asset' && file.names.includes(name))?.fileName ??
          '';
        return [
          { tag: 'link', injectTo: 'head', attrs: { rel: 'manifest', href: `/${named('app.webmanifest')}` } },
          { tag: 'link', injectTo: 'head', attrs: { rel: 'apple-touch-icon', href: `/${named('apple-touch.png')}` } },
        ];
      },
    },
    generateBundle() {
      const emit = (name: string, source: string | Uint8Array) =>
        this.getFileName(this.emitFile({ type: 'asset', name, source }));
      const icon = (name: string) => emit(`${name}.png`, readFileSync(at(`src/icons/${name}.png`)));
      const icons = ICONS.map(([name, about]) => ({ src: `/${icon(name)}`, type: 'image/png', ...about }));
      icon('apple-touch');
      emit('app.webmanifest', JSON.stringify({ ...MANIFEST, icons }));
    },
  };
}

// Builds the page that `throughline serve` serves from `dist/page`. Nothing is inlined: the Content-Security-Policy allows no inline
// scripts and styles.
export default defineConfig({
  root: at('.'),
  // Vite minifies the styles. Tailwind's own optimizer warns about ::highlight(), which it does not support.
  plugins: [react(), tailwind({ optimize: false }), manifest()],
  resolve: { alias: { 'throughline/client': at('../src/client.ts') } },
  build: {
    outDir: at('../dist/page'),
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
