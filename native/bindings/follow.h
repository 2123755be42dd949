// follow.h: the thread's settings follow the running Python code from session to session (session.h).
#pragma once
#include <Python.h>

namespace pk {

// Which session code is in belongs to its contextvars.Context, so that two asyncio tasks of one thread do not mix. What
// launches and allocations read is the thread's, for speed; follow_session() brings that up to date and is called
// wherever Python comes in. It costs one branch until the first session of the process.
extern PyObject *g_session_variable;
bool follow_session_slow();
// False with an exception set when the session's context was destroyed.
inline bool follow_session() { return __builtin_expect(g_session_variable == nullptr, 1) || follow_session_slow(); }

}  // namespace pk
