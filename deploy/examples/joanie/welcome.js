// An Edge Function of Supabase: welcomes somebody by mail, and says how that goes. It may be called again with the same id.

const url = Deno.env.get("SUPABASE_URL");
const key = Deno.env.get("SUPABASE_SERVICE_ROLE_KEY");

/** Calls a function of the schema millrace, with its arguments by name. */
async function millrace(door, args) {
    const answer = await fetch(`${url}/rest/v1/rpc/${door}`, {
        method: "POST",
        headers: {
            apikey: key,
            authorization: `Bearer ${key}`,
            "content-type": "application/json",
            "content-profile": "millrace",
        },
        body: JSON.stringify(args),
    });
    const said = answer.status === 204 ? null : await answer.json();
    if (answer.ok) return said;
    // The HTTP status says little: the class stands in the details, where the refusal is ours.
    let about = {};
    try {
        about = JSON.parse(said.details);
    } catch {
        // It is not.
    }
    throw Object.assign(new Error(said.message), { class: about?.error ?? "unavailable", field: about?.field });
}

Deno.serve(async (request) => {
    const { id, email, name, person } = await request.json();
    try {
        await millrace("mail_welcome", { recipient: email, user_name: name, options: { id, person } });
        const [mail] = await millrace("mail_message", { id });
        return Response.json({ id, status: mail.status, says: mail.user_message });
    } catch (error) {
        const again = ["unavailable", "transient", "timeout"].includes(error.class);
        return Response.json({ error: error.class, field: error.field, says: error.message }, { status: again ? 503 : 422 });
    }
});
