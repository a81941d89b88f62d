/* registry_fuzz - what a registry can send: manifests, indexes, configurations, challenges; and the
 * names that users give. The first byte of the input says which. */
#include <stdint.h>
#include <string.h>

#include "registry/challenge.h"
#include "registry/manifest.h"
#include "registry/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_reference(const char *p, size_t n)
{
    struct reference ref, again;
    char text[REFERENCE_TEXT_MAX];
    if (reference_parse(p, n, "default.test", &ref, NULL) < 0)
        return;
    (void)reference_text(&ref, text);
    if (reference_parse(text, strlen(text), NULL, &again, NULL) < 0 ||
        memcmp(&ref, &again, sizeof(ref)) != 0)
        __builtin_trap(); /* what is written is what was read */
}

static void read_documents(const char *p, size_t n)
{
    struct platform platform;
    struct manifest m = { 0 };
    struct descriptor entry;
    char(*ids)[SHA_SIZE] = NULL;
    struct err err = ERR_INIT;
    bool index;
    (void)platform_parse(NULL, &platform, &err);
    (void)manifest_is_index(p, n, "", &index, &err);
    if (index_choose(p, n, &platform, &entry, &err) >= 0 &&
        (!sha_valid(entry.digest, strlen(entry.digest)) || entry.size > MANIFEST_MAX))
        __builtin_trap();
    if (manifest_parse(p, n, NULL, &m, &err) >= 0 && (m.nlayers == 0 || !m.media_type[0]))
        __builtin_trap();
    manifest_done(&m);
    (void)config_check(p, n, 1, &platform, &ids, &err);
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data + 1;
    struct challenge ch;
    struct platform platform;
    if (size == 0)
        return 0;
    switch (data[0] % 4) {
    case 0: read_reference(p, size - 1); break;
    case 1: challenge_parse(p, size - 1, &ch); break;
    case 2: read_documents(p, size - 1); break;
    default: {
        char *text = strndup(p, size - 1);
        if (text)
            (void)platform_parse(text, &platform, NULL);
        free(text);
    }
    }
    return 0;
}
