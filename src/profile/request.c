/*
 * request.c
 *		The request that an action makes, from the templates of its operation,
 *		and the questions that are asked about it.
 */
#include "profile/request.h"

#include "profile/document.h"
#include "profile/form.h"
#include "profile/header_list.h"

/* What a text body is, by its Content-Type and by nothing else. */
static ArTemplatePart
text_body_part(Jsonb *headers)
{
	if (ar_headers_content_type_has(headers, "json"))
		return AR_PART_JSON;
	if (ar_headers_content_type_has(headers, AR_FORM_CONTENT_TYPE))
		return AR_PART_FORM;
	return AR_PART_TEXT;
}

/* The bodies that are documents: written here only if there is something to write. */
static Jsonb *
body_document(const ArRequestTemplate *template, const ArValues *values)
{
	Jsonb	   *document = values->payload;

	if (template->body_document != NULL)
		document = ar_document_fill(template->body_document, values);
	if (template->reference_body_path != 0 && template->key_body_path != 0)
		ar_document_check_paths(template->reference_body_path, template->key_body_path);
	if (template->reference_body_path != 0)
	{
		if (values->client_reference == NULL)
			ar_template_refuse_missing(values, AR_REFERENCE_NAME, strlen(AR_REFERENCE_NAME), "");
		document = ar_document_write(document, template->reference_body_path, values->client_reference, AR_WRITTEN_REFERENCE);
	}
	if (template->key_body_path != 0)
	{
		if (values->idempotency_key == NULL)
			ar_template_refuse_missing(values, AR_KEY_NAME, strlen(AR_KEY_NAME), "");
		document = ar_document_write(document, template->key_body_path, values->idempotency_key, AR_WRITTEN_KEY);
	}
	return document;
}

static char *
json_text(Jsonb *document)
{
	char	   *text = JsonbToCString(NULL, &document->root, VARSIZE(document));

	ar_template_check_body(strlen(text));
	return text;
}

/* Does the operation send a body that is a document?  A DELETE has none unless something says so. */
static bool
has_document(const ArRequestTemplate *template)
{
	if (template->body_format == AR_BODY_NONE || template->body_template != NULL)
		return false;
	return strcmp(template->method, "DELETE") != 0 || template->body_document != NULL ||
		template->reference_body_path != 0 || template->key_body_path != 0;
}

void
ar_request_render(const ArRequestTemplate *template, const ArValues *values, ArRenderedRequest *request)
{
	ArContentType content_type = AR_CONTENT_TYPE_AS_IS;

	request->path = ar_template_fill(template->path, AR_PART_PATH, values);
	request->body = NULL;
	if (has_document(template))
	{
		Jsonb	   *document = body_document(template, values);

		request->body = template->body_format == AR_BODY_FORM ? ar_form_write(document) : json_text(document);
		if (template->body_format == AR_BODY_FORM)
			content_type = AR_CONTENT_TYPE_FORM;
	}
	else if (template->body_format != AR_BODY_NONE && template->body_template != NULL)
		request->body = ar_template_fill(template->body_template, text_body_part(template->headers), values);
	else
		content_type = AR_CONTENT_TYPE_NONE;
	request->headers = ar_headers_render(template->headers, content_type, values);
}

void
ar_question_render(const ArQuestionTemplate *template, const ArValues *values, ArRenderedRequest *request)
{
	request->path = template->path != NULL ? ar_template_fill(template->path, AR_PART_PATH, values) : NULL;
	request->body = template->body != NULL ? json_text(ar_document_fill(template->body, values)) : NULL;
	request->headers = ar_headers_render(template->headers, template->body != NULL ? AR_CONTENT_TYPE_JSON : AR_CONTENT_TYPE_AS_IS,
										 values);
}

static bool
text_names(const char *text, const char *name)
{
	return text != NULL && ar_template_names(text, strlen(text), name);
}

static bool
request_names(const ArRequestTemplate *template, const char *name)
{
	if (text_names(template->path, name) ||
		(template->headers != NULL && ar_document_names(template->headers, name)))
		return true;
	if (template->body_format == AR_BODY_NONE)
		return false;
	return template->body_template != NULL ? text_names(template->body_template, name) :
		template->body_document != NULL && ar_document_names(template->body_document, name);
}

bool
ar_request_sends_reference(const ArRequestTemplate *template)
{
	return (template->reference_body_path != 0 && template->body_format != AR_BODY_NONE) ||
		request_names(template, AR_REFERENCE_NAME);
}

bool
ar_request_takes_key(const ArRequestTemplate *template)
{
	return (template->key_body_path != 0 && template->body_format != AR_BODY_NONE) ||
		request_names(template, AR_KEY_NAME);
}
