// A list of each thread's own on the device's heap: what follows a node is asked of the node after it is freed.
struct Node {
    int value;
    Node* next;
};

extern "C" __global__ void list_sums(const int* x, int* sums, int length)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Node* head = nullptr;
    for (int k = 0; k < length; ++k) {
        Node* node = static_cast<Node*>(malloc(sizeof(Node)));
        node->value = x[i] + k;
        node->next = head;
        head = node;
    }
    int sum = 0;
    while (head) {
        sum += head->value;
#ifdef FIXED
        Node* next = head->next;
        free(head);
        head = next;
#else
        free(head);
        head = head->next;  // BUG
#endif
    }
    sums[i] = sum;
}
