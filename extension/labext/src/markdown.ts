// What is drawn of a chat's Markdown, as the chat draws it; bundled from there.

export { isInertMarkdown, transcript, typeset } from '@pygpukit/views';
