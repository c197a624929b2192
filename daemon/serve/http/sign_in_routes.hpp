// The requests that sign browsers in and out.
#pragma once
#include "serve/http/router.hpp"

namespace earshot::serve {

/// A one-time code, for the caller's identity.
HttpResponse create_code(const Request& request, const RequestContext& request_context,
                         ServerContext& context);
/// A nonce to sign, and the daemon that it is of.
HttpResponse create_challenge(const Request& request, const RequestContext& request_context,
                              ServerContext& context);
/// Registers the key of a browser that proves that it has a one-time code.
HttpResponse register_browser(const Request& request, const RequestContext& request_context,
                              ServerContext& context);
/// A user's own browsers, all for the owner.
HttpResponse list_browsers(const Request& request, const RequestContext& request_context,
                           ServerContext& context);
/// Likewise; a browser may revoke itself.
HttpResponse revoke_browsers(const Request& request, const RequestContext& request_context,
                             ServerContext& context);
/// Signs out the owner's browsers and revokes the owner's codes: the token was changed.
void sign_out_owner(ServerContext& context);

}  // namespace earshot::serve
